"""Which view of the metrics is on, and where they can be scraped."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import prometheus_client
from prometheus_client import CollectorRegistry

from turnwatch.core.default import default_watch, known_watch, set_default_watch
from turnwatch.core.meter import Exemplar, Meter
from turnwatch.core.watch import Watch
from turnwatch.errors import SettingsError, TurnwatchError
from turnwatch.metrics import otel, unread
from turnwatch.metrics.multiprocess import GaugeWriter, MultiprocessMeter, ReapingCollector, multiprocess_dir
from turnwatch.metrics.prometheus import StoreCollector
from turnwatch.metrics.semconv import SemconvMetrics
from turnwatch.metrics.store import Store
from turnwatch.metrics.verdict_log import VerdictLog
from turnwatch.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

View = Literal["prometheus", "otel"]

logger = logging.getLogger("turnwatch")


class Outlet:
    """One set of counts and the one view it is shown through: two views on one registry double every sum.

    Args:
        view: "prometheus" (a collector, or prometheus-client's files in multi-process mode) or "otel".
        registry: The Prometheus registry; prometheus-client's default one when left out.
        meter_provider: The OpenTelemetry meter provider; the global one when left out.
        watch: The watch whose gauges are shown; the process's own when left out.
        alone: Count in this process only, where prometheus-client's multi-process mode is on as well.

    Raises:
        SettingsError: The folder of the multi-process mode cannot be written to.
        ValueError: The registry has a metric of the same name.
    """

    def __init__(
        self,
        view: View = "prometheus",
        *,
        registry: CollectorRegistry | None = None,
        meter_provider: MeterProvider | None = None,
        watch: Callable[[], Watch] = default_watch,
        alone: bool = False,
    ) -> None:
        if view not in ("prometheus", "otel"):
            raise TurnwatchError(f"metrics={view!r}: use 'prometheus' or 'otel'")
        self.view: View = view
        self.registry = registry if registry is not None else prometheus_client.REGISTRY
        self.meter_provider = meter_provider
        self.meter: Meter
        self._collector: StoreCollector | None = None
        self._writer: GaugeWriter | None = None
        path = multiprocess_dir()
        if view == "otel":
            store = Store()
            otel.attach(store, watch, meter_provider)
            self.meter = store
        elif path is not None and not alone:
            try:
                meter = MultiprocessMeter()
            except OSError as error:
                raise SettingsError(
                    f"environment: PROMETHEUS_MULTIPROC_DIR: {path} cannot be written to ({error.strerror}); "
                    "the folder must be there before the workers start"
                ) from None
            self.meter = meter
            self.registry = CollectorRegistry()
            self.registry.register(ReapingCollector(path))
            self._writer = GaugeWriter(meter, watch, every_seconds=1.0)
            self._writer.start()
        else:
            store = Store()
            self._collector = StoreCollector(store, watch)
            self.registry.register(self._collector)
            self.meter = store

    def show_again(self) -> None:
        """Put the metrics back on a registry that somebody has emptied, as test suites do between tests."""
        if self._collector is not None:
            with contextlib.suppress(ValueError):  # they are on it
                self.registry.register(self._collector)

    def close(self) -> None:
        """Take the metrics off their registry."""
        if self._collector is not None:
            with contextlib.suppress(KeyError):  # somebody else has
                self.registry.unregister(self._collector)
        if self._writer is not None:
            self._writer.stop()


_outlet: Outlet | None = None


def configure(
    settings: Settings | None = None,
    *,
    metrics: View = "prometheus",
    registry: CollectorRegistry | None = None,
    meter_provider: MeterProvider | None = None,
) -> Watch:
    """Set up this process's watch. Optional: without it, environment and YAML file decide at first use.

    Calling it again with the same view and registry keeps what was counted and changes the settings
    for turns that are opened from then on; turns that are open end under those they began with.

    Args:
        settings: Wins over TURNWATCH_* environment and over the YAML file that TURNWATCH_CONFIG names.
        metrics: Show the metrics through prometheus-client or through the OpenTelemetry metrics API.
        registry: Prometheus registry, when not prometheus-client's default one.
        meter_provider: OpenTelemetry meter provider, when not the global one.

    Returns:
        The watch that new turns use.

    Raises:
        SettingsError: a setting is unknown or has the wrong type, or the folder of prometheus-client's multi-process
            mode cannot be written to.
        ValueError: the registry has a metric of the same name.
        MissingExtraError: metrics="otel" without OpenTelemetry.
    """
    from turnwatch.settings_file import load_settings

    return _install(load_settings(settings), metrics, registry, meter_provider)


def show_through(view: View) -> None:
    """Show this process's metrics through this view; the settings in force stay.

    Raises:
        SettingsError: nothing was configured before, and a setting is unknown or has the wrong type.
        MissingExtraError: "otel" without OpenTelemetry.
    """
    if _outlet is not None:
        if _outlet.view != view:
            before = default_watch()
            _install(before.settings, view).settings_faults = before.settings_faults
    elif view != "prometheus":  # which is what the first use brings
        configure(metrics=view)


def _install(
    settings: Settings,
    view: View = "prometheus",
    registry: CollectorRegistry | None = None,
    meter_provider: MeterProvider | None = None,
) -> Watch:
    global _outlet
    wanted = registry if registry is not None else prometheus_client.REGISTRY
    kept = _outlet
    if (
        kept is None
        or kept.view != view
        or kept.meter_provider is not meter_provider
        or (view == "prometheus" and kept.registry is not wanted and multiprocess_dir() is None)
    ):
        # The old one goes when the new one stands: a registry that refuses it must not leave the process uncounted.
        outlet = Outlet(view, registry=registry, meter_provider=meter_provider)
        if kept is not None:
            kept.close()
        _outlet = kept = outlet
    else:
        kept.show_again()
    watch = Watch(settings, kept.meter, exemplar=sampled_trace, before=known_watch())
    if settings.semconv_metrics and view == "otel":
        watch.listeners.append(SemconvMetrics(meter_provider))
    watch.on_verdict.append(VerdictLog())
    set_default_watch(watch)
    return watch


def first_use() -> Watch:
    """The watch of a process that never called configure. What is wrong is logged, not raised: the agent goes on.

    Of the settings, all that is right holds: a misspelt key must not switch off the limits beside it.
    """
    from turnwatch.settings_file import settings_that_hold

    global _outlet
    try:
        settings, faults = settings_that_hold()
    except Exception as error:
        settings, faults = Settings(), [f"the settings cannot be read: {type(error).__name__}"]
    metrics_fault = ""
    if _outlet is None:
        try:
            _outlet = Outlet()
        except (ValueError, SettingsError) as error:
            _outlet = Outlet(registry=CollectorRegistry(), alone=True)
            metrics_fault = f"the metrics, which are in this process's turnwatch.metrics_registry() only: {error}"
    try:
        watch = Watch(settings, _outlet.meter, exemplar=sampled_trace)
    except SettingsError as error:
        settings = settings.model_copy(update={"prices_file": None})
        watch = Watch(settings, _outlet.meter, exemplar=sampled_trace)
        faults.append(f"prices_file: published prices are used: {error}")
    watch.on_verdict.append(VerdictLog())
    if metrics_fault:
        watch.internal_error(metrics_fault)
    if faults:
        watch.settings_faults = tuple(faults)
        watch.count("turnwatch_internal_errors_total")
        logger.error("turnwatch leaves out settings that are wrong, and goes on with the others: %s", "; ".join(faults))
    return watch


def current_trace() -> Exemplar | None:
    """Trace and span id of the current OpenTelemetry span, where there is one."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return {"trace_id": format(context.trace_id, "032x"), "span_id": format(context.span_id, "016x")}


def sampled_trace() -> Exemplar | None:
    """The same for exemplars: of a span that is sampled, because the others are nowhere to be looked up."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    is_sampled = trace is not None and trace.get_current_span().get_span_context().trace_flags.sampled
    return current_trace() if is_sampled else None


def metrics_registry() -> CollectorRegistry:
    """The registry to scrape: in multi-process mode the one that adds up all workers."""
    default_watch()
    assert _outlet is not None
    return _outlet.registry


def start_metrics_server(port: int = 9464, host: str = "127.0.0.1") -> tuple[Any, Any]:
    """Serve /metrics on this address from a background thread.

    Args:
        port: TCP port; 0 picks a free one.
        host: Address to listen on: loopback unless told otherwise.

    Returns:
        (server, thread); ``server.shutdown()`` ends it.

    Raises:
        OSError: the address is taken.
    """
    try:
        served: tuple[Any, Any] = prometheus_client.start_http_server(port, host, metrics_registry())
    except OSError as error:
        raise OSError(error.errno, f"cannot serve metrics on {host}:{port}: {unread.why_taken(error)}") from None
    unread.is_served()
    return served


def metrics_asgi_app() -> Callable[..., Any]:
    """An ASGI app that answers with the metrics, to mount where /metrics is wanted."""
    return prometheus_client.make_asgi_app(metrics_registry())


def metrics_wsgi_app() -> Callable[..., Any]:
    """A WSGI app that answers with the metrics, to mount where /metrics is wanted."""
    return prometheus_client.make_wsgi_app(metrics_registry())

"""One line for an agent that already has OpenTelemetry GenAI spans."""

from __future__ import annotations

import logging
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from turnwatch.core.default import default_watch
from turnwatch.errors import MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from turnwatch.settings import Settings
    from turnwatch.sources.spans.processor import TurnSpanProcessor

logger = logging.getLogger("turnwatch")


def instrument(
    tracer_provider: TracerProvider | None = None,
    metrics: Literal["prometheus", "otel"] | None = None,
    port: int | None = None,
    host: str = "127.0.0.1",
) -> TurnSpanProcessor:
    """Count and judge the turns of this process out of its GenAI spans.

    Calling it again for the same provider changes nothing.

    Args:
        tracer_provider: Where the agent's spans are made; the global provider when left out, which is set up
            first if nobody has done so. OpenTelemetry then takes no other, so set up your own before.
        metrics: Show the metrics through prometheus-client or through the OpenTelemetry metrics API; left as
            they are when left out, which is prometheus-client.
        port: Also serve /metrics on this port. One that is taken is logged and counted, and the agent goes on.
        host: Address to serve on: loopback unless told otherwise.

    Returns:
        The processor; its ``shutdown`` ends every open turn.

    Raises:
        MissingExtraError: without the OpenTelemetry SDK.
        SettingsError: with ``metrics="otel"``, some settings are wrong.
    """
    try:
        from opentelemetry.sdk.trace import TracerProvider as SdkProvider
    except ImportError as error:
        raise MissingExtraError("instrument()", "otel") from error
    from turnwatch.metrics.outlet import show_through, start_metrics_server
    from turnwatch.sources.spans.processor import TurnSpanProcessor

    provider: Any = tracer_provider if tracer_provider is not None else _global_provider(SdkProvider)
    if metrics is not None:
        show_through(metrics)
    processor: TurnSpanProcessor | None = getattr(provider, "_turnwatch_processor", None)
    if processor is None:
        processor = TurnSpanProcessor()
        _add(processor, provider)
        provider._turnwatch_processor, provider._turnwatch_served = processor, set()
        _say_what_sampling_hides(provider)
        say_what_needs_guards(default_watch().settings)
    if port is not None and (host, port) not in provider._turnwatch_served:
        try:
            start_metrics_server(port, host)
            provider._turnwatch_served.add((host, port))
        except OSError as error:  # the agent is to run all the same
            default_watch().internal_error(str(error))
    return processor


def _add(processor: TurnSpanProcessor, provider: Any) -> None:
    """Add a processor beside those that are there, for which Phoenix's provider gives up its exporter unless told."""
    keeps = "replace_default_processor"
    options = {keeps: False} if keeps in signature(provider.add_span_processor).parameters else {}
    provider.add_span_processor(processor, **options)


def _global_provider(sdk_provider: type[TracerProvider]) -> TracerProvider:
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = sdk_provider()
        trace.set_tracer_provider(provider)
        logger.info("no tracer provider was set up, so turnwatch has set one up that exports nothing")
    return provider  # type: ignore[return-value]


def say_what_needs_guards(settings: Settings) -> None:
    """Log which settings do nothing for turns that come as spans."""
    keys = settings.only_for_guards()
    if keys:
        logger.warning(
            "%s: heeded where the agent runs under a guard (docs/guards.md); turns that come as spans are only watched",
            ", ".join(keys),
        )


def _say_what_sampling_hides(provider: Any) -> None:
    sampler = getattr(provider, "sampler", None)
    description = sampler.get_description() if sampler is not None else ""
    of_roots = description.partition("root:")[2] or description  # a ParentBased sampler names four more
    if of_roots.startswith(("TraceIdRatio", "AlwaysOff")):
        logger.warning(
            "The tracer provider samples (%s). Spans that are not sampled are not seen: their turns are neither "
            "counted nor judged, and their spend is not in the metrics.",
            description,
        )

"""The Prometheus view of prefork servers: prometheus-client's files, gauges written as the window slides.

With PROMETHEUS_MULTIPROC_DIR set, prometheus-client keeps each worker's values in files and adds them
up at the scrape. It knows no custom collectors there, so counting goes straight into its metrics.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from turnwatch.core.meter import Counter, Exemplar, Histogram
from turnwatch.core.watch import Watch
from turnwatch.metrics.catalogue import BY_NAME, CATALOGUE, Metric
from turnwatch.metrics.prometheus import gauge_rows


def multiprocess_dir() -> str | None:
    """The folder of prometheus-client's multi-process mode, when it is on."""
    return os.environ.get("PROMETHEUS_MULTIPROC_DIR")


class _CounterSeries:
    """Drops exemplars: prometheus-client's multi-process mode has none."""

    __slots__ = ("_child",)

    def __init__(self, child: prometheus_client.Counter) -> None:
        self._child = child

    def inc(self, amount: float = 1.0, exemplar: Exemplar | None = None) -> None:
        self._child.inc(amount)


class _HistogramSeries:
    __slots__ = ("_child",)

    def __init__(self, child: prometheus_client.Histogram) -> None:
        self._child = child

    def observe(self, value: float, exemplar: Exemplar | None = None) -> None:
        self._child.observe(value)


class MultiprocessMeter:
    """Counts into prometheus-client metrics, which keep each worker's values in files."""

    def __init__(self) -> None:
        registry = CollectorRegistry()  # never scraped: the scrape reads the files
        self._counters: dict[str, prometheus_client.Counter] = {}
        self._histograms: dict[str, prometheus_client.Histogram] = {}
        self._gauges: dict[str, prometheus_client.Gauge] = {}
        for metric in CATALOGUE:
            if metric.type == "counter":
                self._counters[metric.name] = prometheus_client.Counter(
                    metric.name, metric.help, metric.labels, registry=registry
                )
            elif metric.type == "histogram":
                self._histograms[metric.name] = prometheus_client.Histogram(
                    metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=registry
                )
            else:
                self._gauges[metric.name] = prometheus_client.Gauge(
                    metric.name, metric.help, metric.labels, multiprocess_mode=_mode(metric), registry=registry
                )
        self._series: dict[tuple[str, ...], _CounterSeries | _HistogramSeries] = {}

    def counter(self, name: str, *labels: str) -> Counter:
        """The counter series of these label values, born at 0."""
        key = (name, *labels)
        series = self._series.get(key)
        if series is None:
            parent = self._counters[name]
            series = self._series[key] = _CounterSeries(parent.labels(*labels) if BY_NAME[name].labels else parent)
        assert isinstance(series, _CounterSeries)
        return series

    def histogram(self, name: str, *labels: str) -> Histogram:
        """The histogram series of these label values."""
        key = (name, *labels)
        series = self._series.get(key)
        if series is None:
            parent = self._histograms[name]
            series = self._series[key] = _HistogramSeries(parent.labels(*labels) if BY_NAME[name].labels else parent)
        assert isinstance(series, _HistogramSeries)
        return series

    def write_gauges(self, watch: Watch) -> None:
        """Write every gauge as it is now; one whose window has emptied is written as 0."""
        for name, rows in gauge_rows(watch).items():
            gauge = self._gauges[name]
            # Under the lock that a fork waits for: prometheus-client has one of its own, which the child would
            # find closed.
            with watch.lock:
                for labels, value in rows:
                    (gauge.labels(*labels) if labels else gauge).set(value)


def _mode(metric: Metric) -> Literal["livemax", "livesum"]:
    # Open turns add up over workers; every other gauge is a maximum already.
    return "livesum" if metric.name == "agent_open_turns" else "livemax"


class GaugeWriter:
    """Writes the gauges of this worker again and again, since its files are only read at a scrape."""

    def __init__(self, meter: MultiprocessMeter, watch: Callable[[], Watch], every_seconds: float) -> None:
        self._meter = meter
        self._watch = watch
        self._every = every_seconds
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        os.register_at_fork(after_in_child=self._after_fork)

    def start(self) -> None:
        """Write in the background until stopped."""
        self._thread = threading.Thread(target=self._run, name="turnwatch-gauges", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop writing; the last values stay."""
        self._stopped.set()

    def _after_fork(self) -> None:
        # Threads do not survive a fork, and neither do the parent's open turns.
        if self._stopped.is_set():
            return
        self._stopped = threading.Event()
        self._watch().forget_open_turns()
        self.start()

    def _run(self) -> None:
        stopped = self._stopped
        while not stopped.wait(self._every):
            try:
                self._meter.write_gauges(self._watch())
            except Exception:
                self._watch().internal_error("the gauge writer")


class ReapingCollector:
    """prometheus-client's multi-process collector, without the gauges of workers that died unannounced."""

    def __init__(self, path: str) -> None:
        self._path = path

    def describe(self) -> Iterable[Family]:
        """Nothing: the workers' metrics are only known at the scrape."""
        return []

    def collect(self) -> Iterable[Family]:
        """What all workers counted and what the living ones show."""
        for pid in _dead_workers(self._path):
            with contextlib.suppress(FileNotFoundError):  # another scrape takes them away as well
                mark_process_dead(pid, self._path)
        files = [str(file) for file in Path(self._path).glob("*.db") if _has_begun(file)]
        families: Iterable[Family] = MultiProcessCollector.merge(files)
        return families


def _has_begun(file: Path) -> bool:
    """Whether a worker has given the file its size. prometheus-client fails at one that was only just made."""
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:  # of a worker that died in between
        return False


def _dead_workers(path: str) -> set[int]:
    names = {file.stem.rsplit("_", 1)[1] for file in Path(path).glob("gauge_live*_*.db")}
    # An application may have told prometheus-client to name workers by something else.
    return {int(name) for name in names if name.isdecimal() and not _alive(int(name))}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:  # a killed worker that its parent has not reaped yet still answers to signals
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True

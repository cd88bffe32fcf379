"""One thread that decodes requests and feeds what they hold to the turns.

One, because turns are put together by one caller at a time, and because a second could not run beside it anyway: it
is all Python. The event loop stays free to read from other clients; how much may wait here is bounded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol

from turnwatch.core.quietly import Quietly
from turnwatch.core.watch import Watch
from turnwatch.service.decode import Decoded, decode
from turnwatch.service.refusal import BUSY, FAULT, Refusal
from turnwatch.service.signals import Form, Signal
from turnwatch.sources.spans.logs import LogData
from turnwatch.sources.spans.span import PassingSpans, SpanData

_STALLED_SECONDS: Final = 60.0

logger = logging.getLogger("turnwatch.service")


class Feed(Protocol):
    """What puts turns together."""

    def feed(self, spans: Iterable[SpanData | PassingSpans], now: float) -> None:
        """Take ended spans in."""

    def feed_logs(self, logs: Iterable[LogData], now: float) -> None:
        """Take log records in."""

    def tick(self, now: float) -> None:
        """Let time pass."""

    def flush(self) -> None:
        """End every turn: nothing more will come."""

    def report(self) -> None:
        """Write its own counts to the meter."""


class Intake:
    """Takes requests from any thread and does their work on one of its own.

    Args:
        watch: Its settings bound what is taken, its clock is the one turns are measured by.
        turns: Fed on the intake's own thread only.
    """

    def __init__(self, watch: Watch, turns: Feed) -> None:
        self._watch = watch
        self._limits = watch.settings.service
        self._turns = turns
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="turnwatch-intake")
        self._lock = threading.Lock()
        self._pending = 0
        self._last_beat = watch.clock()

    def submit(self, body: bytes, signal: Signal, form: Form, encoding: str) -> Future[Decoded]:
        """Have one request decoded and counted.

        Returns:
            What it held; the future raises Refusal where it cannot be read.

        Raises:
            Refusal: busy, when too many wait already.
        """
        with self._lock:
            if self._pending >= self._limits.max_pending_requests:
                raise Refusal(BUSY, "too many requests wait")
            self._pending += 1
        try:
            future = self._thread.submit(self._take, body, signal, form, encoding)
        except RuntimeError:  # the thread has ended
            self._done(None)
            raise Refusal(BUSY, "the service is stopping") from None
        future.add_done_callback(self._done)
        return future

    def _done(self, _: Future[Decoded] | None) -> None:
        with self._lock:
            self._pending -= 1

    def _take(self, body: bytes, signal: Signal, form: Form, encoding: str) -> Decoded:
        try:
            decoded = decode(body, signal, form, encoding, self._limits)
        except Refusal:
            raise
        except MemoryError:
            raise Refusal(BUSY, "out of memory") from None
        except Exception:
            self._watch.internal_error("decoding a request")
            raise Refusal(FAULT, "the request could not be read") from None
        now = self._watch.clock()
        with Quietly(self._watch, "counting a request"):  # which is passed on all the same
            if decoded.spans:
                self._turns.feed(decoded.spans, now)
            if decoded.logs:
                self._turns.feed_logs(decoded.logs, now)
        if decoded.rejected and signal == "traces":
            self._watch.count("turnwatch_spans_total", "rejected", amount=decoded.rejected)
        return decoded

    def tick(self) -> Future[None]:
        """Let time pass for the turns."""
        return self._thread.submit(self._tick)

    def _tick(self) -> None:
        self._last_beat = self._watch.clock()
        try:
            self._turns.tick(self._last_beat)
            self._turns.report()
        except Exception:
            self._watch.internal_error("ending turns that are due")

    @property
    def is_stalled(self) -> bool:
        """Whether the thread has not come round for a minute."""
        return self._watch.clock() - self._last_beat > _STALLED_SECONDS

    def close(self) -> None:
        """Do what waits, end every turn and stop the thread. Blocks."""
        try:
            self._thread.submit(self._turns.flush).result()
        except Exception:
            self._watch.internal_error("ending the open turns")
        self._thread.shutdown()

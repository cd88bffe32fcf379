"""Reads every source again and again, each from a thread of its own, so that a slow one holds up nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from turnwatch.top.reading import Kind, Reading, Source, SourceError


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is known of a source.

    Attributes:
        address: Its address, as it is shown.
        kind: What it is; None as long as that is not known.
        reading: The last that it gave, also when it is down now.
        error: Why it is down; None while it is up, and before it was first read.
        looks: How often it has been read or tried.
        at: Unix time of the last try.
    """

    address: str
    kind: Kind | None = None
    reading: Reading | None = None
    error: str | None = None
    looks: int = 0
    at: float = 0.0

    @property
    def is_up(self) -> bool:
        """Whether the last try gave a reading."""
        return self.reading is not None and self.error is None


class Polling:
    """Threads that read the sources until they are told to stop.

    Args:
        sources: What to read.
        interval_seconds: From one look at a source to the next.
        on_news: Called from the threads when a source has been tried. Must not wait.
    """

    def __init__(
        self, sources: Sequence[Source], interval_seconds: float, on_news: Callable[[], None] = lambda: None
    ) -> None:
        self._interval = interval_seconds
        self._on_news = on_news
        self._news = threading.Condition()
        self._states = [SourceState(source.address) for source in sources]
        self._enough = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number, source), name=f"top {number}", daemon=True)
            for number, source in enumerate(sources)
        ]

    @property
    def states(self) -> list[SourceState]:
        """What is known of each source now."""
        with self._news:
            return list(self._states)

    def start(self) -> None:
        """Begin to read."""
        for thread in self._threads:
            thread.start()

    def wait_for(
        self, is_enough: Callable[[Sequence[SourceState]], bool], patience_seconds: float
    ) -> list[SourceState]:
        """Wait until what is known is enough, and return what is known then, enough or not."""
        with self._news:
            self._news.wait_for(lambda: is_enough(self._states), patience_seconds)
            return list(self._states)

    def stop(self) -> None:
        """Read no more. Does not wait for an answer that is under way: the threads end with the process."""
        self._enough.set()

    def _run(self, number: int, source: Source) -> None:
        while not self._enough.is_set():
            started = time.monotonic()
            reading, error = look(source)
            with self._news:
                before = self._states[number]
                self._states[number] = replace(
                    before,
                    kind=source.kind,
                    reading=before.reading if reading is None else reading,
                    error=error,
                    looks=before.looks + 1,
                    at=time.time(),
                )
                self._news.notify_all()
            self._on_news()
            self._enough.wait(max(0.0, started + self._interval - time.monotonic()))


def look(source: Source) -> tuple[Reading | None, str | None]:
    """Read a source once: what it gave, or one line that says why not."""
    try:
        return source.read(), None
    except SourceError as error:
        return None, str(error)
    except Exception as error:  # one odd source must not end the watching of the others
        return None, f"{source.address}: {type(error).__name__}"

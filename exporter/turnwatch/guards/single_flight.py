"""Is the same call running right now? Then wait for its result instead of sending it again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Hashable
from concurrent.futures import Future
from contextvars import ContextVar, Token
from typing import final

from turnwatch.core.forking import fork_safe_lock
from turnwatch.guards.results import Kept

Outcome = Kept | BaseException | None
"""What came of a flight: the content, what was raised, or None when it has to be run again."""

_mine: ContextVar[tuple[Hashable, ...]] = ContextVar("turnwatch_flights", default=())


@final
class Flight:
    """One running call that others may wait for."""

    __slots__ = ("_done", "_key", "_loop", "_token")

    def __init__(self, key: Hashable, loop: asyncio.AbstractEventLoop | None) -> None:
        self._key = key
        self._done: Future[Outcome] | None = None  # made for the first that waits: most calls have nobody waiting
        self._loop = loop
        self._token: Token[tuple[Hashable, ...]] | None = None

    def needs_this_thread(self) -> bool:
        """Whether the call runs in this thread's event loop, so that blocking here would keep it from ending."""
        return self._loop is not None and self._loop is _running_loop()

    def wait(self) -> Outcome:
        """Wait in a thread."""
        assert self._done is not None
        return self._done.result()

    async def await_(self) -> Outcome:
        """Wait in a coroutine. Being cancelled here does not cancel the call."""
        assert self._done is not None
        return await asyncio.shield(asyncio.wrap_future(self._done))


@final
class Flights:
    """The calls that are running. Thread-safe."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Flight] = {}
        self._lock = fork_safe_lock()

    def board(self, key: Hashable, loop: asyncio.AbstractEventLoop | None = None) -> tuple[Flight, bool]:
        """The flight of this key, and whether the caller has to fly it (and then to land it).

        A call made from inside the same call is a flight of its own: waiting for itself would never end.

        Args:
            key: What is the same call.
            loop: The event loop that the caller would fly it in; None for a thread.
        """
        with self._lock:
            flight = self._running.get(key)
            if flight is not None and key not in _mine.get():
                if flight._done is None:
                    flight._done = Future()
                return flight, False
            flight = Flight(key, loop)
            self._running.setdefault(key, flight)
        flight._token = _mine.set((*_mine.get(), key))
        return flight, True

    def land(self, flight: Flight, outcome: Outcome) -> None:
        """Say what came of a flight that was boarded to be flown."""
        with self._lock:
            if self._running.get(flight._key) is flight:
                del self._running[flight._key]
        if flight._done is not None:
            flight._done.set_result(outcome)
        if flight._token is not None:
            with contextlib.suppress(ValueError):  # landed in another context
                _mine.reset(flight._token)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

"""Is the same call running right now? Then wait for its result instead of sending it again."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Hashable
from concurrent.futures import Future
from contextvars import ContextVar, Token
from typing import final

from turnwatch.core.forking import fork_safe_lock
from turnwatch.guards.results import Kept

Outcome = Kept | BaseException | None
"""What came of a flight: the content, what was raised, or None when it has to be run again."""

_mine: ContextVar[tuple[Flight, ...]] = ContextVar("turnwatch_flights", default=())
"""The flights that this code runs inside of."""


@final
class Flight:
    """One running call that others may wait for."""

    __slots__ = ("_done", "_key", "_loop", "_token", "_waits_for")

    def __init__(self, key: Hashable, loop: asyncio.AbstractEventLoop | None) -> None:
        self._key = key
        self._done: Future[Outcome] | None = None  # made for the first that waits: most calls have nobody waiting
        self._loop = loop
        self._token: Token[tuple[Flight, ...]] | None = None
        self._waits_for: list[Flight] = []

    def is_under_way(self) -> bool:
        """Whether it has not landed. For those that somebody waits for."""
        return self._done is not None and not self._done.done()

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
        self._process = os.getpid()

    def board(self, key: Hashable, loop: asyncio.AbstractEventLoop | None = None) -> tuple[Flight, bool]:
        """The flight of this key, and whether the caller has to fly it (and then to land it).

        A call is a flight of its own where it is made from inside the same call, or from inside one that the same
        call waits for: the two would wait for each other for ever.

        Args:
            key: What is the same call.
            loop: The event loop that the caller would fly it in; None for a thread.
        """
        mine = _mine.get()
        with self._lock:
            if self._process != os.getpid():  # what was running when the process forked lands in its parent
                self._process = os.getpid()
                self._running.clear()
            flight = self._running.get(key)
            if flight is not None and not _waits_for_one_of(mine, flight):
                if flight._done is None:
                    flight._done = Future()
                for one in mine:
                    one._waits_for = [*filter(Flight.is_under_way, one._waits_for), flight]
                return flight, False
            flight = Flight(key, loop)
            self._running.setdefault(key, flight)
        flight._token = _mine.set((*mine, flight))
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


def _waits_for_one_of(mine: tuple[Flight, ...], flight: Flight) -> bool:
    """Whether a flight is one of these, or waits for one, maybe over others. Nothing ever waits in a circle."""
    if not mine:
        return False
    ahead = [flight]
    while ahead:
        one = ahead.pop()
        if one in mine:
            return True
        ahead += one._waits_for
    return False


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

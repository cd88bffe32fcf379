"""What waits to be passed on: bounded, oldest first, with every loss counted."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

from turnwatch.core.watch import Watch
from turnwatch.service.ledger import Ledger
from turnwatch.service.signals import PATHS, Signal

DropReason = Literal["queue_full", "rejected", "expired", "shutdown", "killed"]
DROP_REASONS: Final[tuple[DropReason, ...]] = ("queue_full", "rejected", "expired", "shutdown", "killed")


@dataclass(frozen=True, slots=True)
class Parcel:
    """One request to pass on, as it was received.

    Attributes:
        body: The bytes, still in their content encoding.
        items: Spans or log records in it.
        accepted: When it was taken, in seconds of the monotonic clock.
    """

    signal: Signal
    body: bytes
    content_type: str
    encoding: str
    items: int
    accepted: float


class ForwardQueue:
    """Keeps parcels until somebody passes them on. For one event loop's thread.

    When it is full the newcomer is dropped, not the oldest: what was accepted first is passed on first.

    Args:
        max_bytes: Bodies that may wait or be under way at one moment.
        ledger: Where the numbers are written down in case the process is killed; None for nowhere.
    """

    def __init__(self, watch: Watch, max_bytes: int, ledger: Ledger | None = None) -> None:
        self._watch = watch
        self._max_bytes = max_bytes
        self._ledger = ledger
        self._waiting: deque[Parcel] = deque()
        self._bytes = 0
        self._is_closed = False
        self._changed = asyncio.Condition()
        watch.more_gauges.append(lambda: [("turnwatch_forward_queue_ratio", (), self._bytes / self._max_bytes)])
        for signal in PATHS:
            watch.count("turnwatch_forwarded_total", signal, amount=0)
            for reason in DROP_REASONS:
                watch.count("turnwatch_forward_dropped_total", signal, reason, amount=0)
        if ledger is not None:
            for signal, items in ledger.lost_before().items():
                self._count_drop(signal, items, "killed")

    async def offer(self, signal: Signal, body: bytes, content_type: str, encoding: str, items: int) -> None:
        """Take a request to pass on; where there is no room it is dropped and counted."""
        if self._is_closed or self._bytes + len(body) > self._max_bytes:
            self._count_drop(signal, items, "shutdown" if self._is_closed else "queue_full")
            return
        if self._ledger is not None:
            self._ledger.accepted(signal, items)
        self._bytes += len(body)
        async with self._changed:
            self._waiting.append(Parcel(signal, body, content_type, encoding, items, time.monotonic()))
            self._changed.notify()

    async def next(self) -> Parcel | None:
        """The oldest parcel that nobody has yet; waits for one. None when the queue is closed and empty."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if not self._waiting:
                return None
            return self._waiting.popleft()

    def delivered(self, parcel: Parcel) -> None:
        """The parcel was passed on."""
        self._settle(parcel)
        self._watch.count("turnwatch_forwarded_total", parcel.signal, amount=parcel.items)

    def dropped(self, parcel: Parcel, reason: DropReason) -> None:
        """The parcel was given up."""
        self._settle(parcel)
        self._count_drop(parcel.signal, parcel.items, reason)

    async def close(self) -> None:
        """Take nothing more; whoever waits for a parcel learns when the last is gone."""
        async with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def drop_waiting(self, reason: DropReason) -> None:
        """Give up everything that nobody has begun to pass on."""
        while self._waiting:
            self.dropped(self._waiting.popleft(), reason)

    def _settle(self, parcel: Parcel) -> None:
        self._bytes -= len(parcel.body)
        if self._ledger is not None:
            self._ledger.settled(parcel.signal, parcel.items)

    def _count_drop(self, signal: Signal, items: int, reason: DropReason) -> None:
        self._watch.count("turnwatch_forward_dropped_total", signal, reason, amount=items)

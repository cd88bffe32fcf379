"""Trailing-window maxima in bounded memory: what the ``*_max`` gauges are computed from."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from math import inf
from typing import Final

_MAX_STEPS: Final = 128
BUCKETS_PER_WINDOW: Final = 60


class ExpiringMax:
    """The largest of many values that each expire at a time of their own.

    A value matters only while no other is at least as large and expires at least as late, so what is
    kept is a staircase: sorted by expiry, values falling. Past 128 steps the two with the closest
    expiries become one that keeps the larger value and the later expiry.
    """

    __slots__ = ("_expiries", "_values")

    def __init__(self) -> None:
        self._expiries: list[float] = []
        self._values: list[float] = []

    def put(self, value: float, expires: float) -> None:
        """Let ``value`` count until ``expires``."""
        expiries, values = self._expiries, self._values
        if len(values) == 1 and value >= values[0] and expires >= expiries[0]:  # one turn counting up
            values[0] = value
            expiries[0] = expires
            return
        if expiries and expires < expiries[-1]:
            if value > values[-1]:
                self._insert(value, expires)
            return
        while values and values[-1] <= value:
            values.pop()
            expiries.pop()
        expiries.append(expires)
        values.append(value)
        if len(values) > _MAX_STEPS:
            self._merge_closest()

    def _insert(self, value: float, expires: float) -> None:
        expiries, values = self._expiries, self._values
        at = bisect_left(expiries, expires)
        if values[at] >= value:
            return
        if expiries[at] == expires:
            values[at] = value
        else:
            expiries.insert(at, expires)
            values.insert(at, value)
        start = at
        while start and values[start - 1] <= value:
            start -= 1
        del expiries[start:at], values[start:at]
        if len(values) > _MAX_STEPS:
            self._merge_closest()

    def _merge_closest(self) -> None:
        expiries = self._expiries
        at = min(range(len(expiries) - 1), key=lambda i: expiries[i + 1] - expiries[i])
        del expiries[at], self._values[at + 1]

    def largest(self, now: float) -> float:
        """The largest value that has not expired at ``now``; 0 when there is none."""
        expired = 0
        for expires in self._expiries:
            if expires > now:
                break
            expired += 1
        if expired:
            del self._expiries[:expired], self._values[:expired]
        return self._values[0] if self._values else 0.0


class CallTimes:
    """When one key's calls started, as counts per short bucket over the trailing window.

    A bucket keeps the time of its latest call, so a bucket of one call is exact, and a fuller one
    leaves the window at most one bucket's length (a sixtieth of the window) late.
    """

    __slots__ = ("_counts", "_latest")

    def __init__(self, at: float) -> None:
        self._latest: list[float] = [at]
        self._counts: list[int] = [1]

    def add(self, at: float, window: float) -> None:
        """Note a call at ``at`` and forget those that left the window."""
        latest, counts = self._latest, self._counts
        if at < latest[-1]:
            at = latest[-1]
        bucket = window / BUCKETS_PER_WINDOW
        if at // bucket == latest[-1] // bucket:
            latest[-1] = at
            counts[-1] += 1
        else:
            latest.append(at)
            counts.append(1)
        horizon = at - window
        expired = 0
        while latest[expired] <= horizon:
            expired += 1
        if expired:
            del latest[:expired], counts[:expired]

    @property
    def only_bucket(self) -> tuple[int, float] | None:
        """(calls, time of the latest) while all of them are in one bucket."""
        return (self._counts[0], self._latest[0]) if len(self._counts) == 1 else None

    def tails(self, window: float) -> Iterator[tuple[int, float]]:
        """(how many calls started since, when that stops being so), newest first."""
        total = 0
        for at, count in zip(reversed(self._latest), reversed(self._counts), strict=True):
            total += count
            yield total, at + window


def put_tails(series: ExpiringMax, times: CallTimes, window: float, *, at_most: float = inf) -> None:
    """Let ``series`` know how many of these calls are in the window, now and as it slides.

    Args:
        series: Where the numbers go.
        times: When the calls started.
        window: Seconds.
        at_most: How many of the latest calls matter.
    """
    only = times.only_bucket
    if only is not None:
        series.put(min(only[0], at_most), only[1] + window)
        return
    for total, expires in times.tails(window):
        series.put(min(total, at_most), expires)
        if total >= at_most:
            return

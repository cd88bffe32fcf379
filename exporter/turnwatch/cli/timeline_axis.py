"""Where on a timeline's x axis a call stands: by time where that can be read, else in order."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from turnwatch.sources.timeline import Mark

# Percent of the width, so that marks keep their size on a screen of any width.
_LEFT: Final = 2.0
_RIGHT: Final = 98.0
# Calls left out take this many places of an axis in order.
_GAP_PLACES: Final = 4.0
# Marks of one tool that are nearer than this (a mark's width on a wide screen) cannot be told apart.
_READABLE_PERCENT: Final = 0.8
_TICKS: Final = 6
_TICKS_APART: Final = 8.0
_STEPS_CALLS: Final = (1, 2, 5, 10, 20, 50, 100)
_STEPS_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Axis:
    """Places of a turn's calls.

    Attributes:
        by_time: Whether the places are times; otherwise the calls stand at even distances.
        places: Percent of the width, of each mark.
        gaps: (from, to, calls left out) in percent.
        ticks: (percent, label).
    """

    by_time: bool
    numbers: list[int]
    places: list[float]
    gaps: list[tuple[float, float, int]]
    ticks: list[tuple[float, str]]

    def place(self, number: int) -> float:
        """Where a call stands, or would stand if it had been kept."""
        at = bisect_left(self.numbers, number)
        if at == len(self.numbers):
            return self.places[-1]
        if self.numbers[at] == number or at == 0:
            return self.places[at]
        return (self.places[at - 1] + self.places[at]) / 2


def axis_of(marks: list[Mark]) -> Axis:
    """The axis for these marks, of which there is at least one."""
    numbers = [mark.number for mark in marks]
    times = _readable_times(marks)
    if times is not None:
        start, span = times[0], times[-1] - times[0]
        places = [_LEFT + (at - start) / span * (_RIGHT - _LEFT) for at in times]
        step = next((step for step in _STEPS_SECONDS if span / step <= _TICKS), span / _TICKS)
        ticks = [
            (_LEFT + n * step / span * (_RIGHT - _LEFT), _since(n * step, span)) for n in range(int(span / step) + 1)
        ]
    else:
        in_order = [0.0]
        for one, other in pairwise(numbers):
            in_order.append(in_order[-1] + (1.0 if other == one + 1 else _GAP_PLACES))
        width = in_order[-1] or 1.0
        places = [_LEFT + at / width * (_RIGHT - _LEFT) for at in in_order]
        ticks = _numbers_as_ticks(numbers, places)
    gaps = [
        (places[n], places[n + 1], other - one - 1)
        for n, (one, other) in enumerate(pairwise(numbers))
        if other > one + 1
    ]
    return Axis(times is not None, numbers, places, gaps, ticks)


def _since(seconds: float, span: float) -> str:
    """A time since the start, short, for there are several in a row."""
    if span < 3_600:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
    if span < 2 * 86_400:
        return f"{int(seconds // 3_600)}:{int(seconds % 3_600 // 60):02d} h"
    return f"{seconds / 86_400:.3g} d"


def _readable_times(marks: list[Mark]) -> list[float] | None:
    times = [mark.at for mark in marks if mark.at is not None]
    if len(times) < max(2, len(marks)):
        return None
    # Parallel calls may end, and so be counted, in another order than they began.
    for n in range(1, len(times)):
        times[n] = max(times[n], times[n - 1])
    span = times[-1] - times[0]
    if span < 1.0:
        return None
    latest: dict[str, float] = {}
    apart: list[float] = []
    for mark, at in zip(marks, times, strict=True):
        if mark.tool in latest:
            apart.append((at - latest[mark.tool]) / span * (_RIGHT - _LEFT))
        latest[mark.tool] = at
    in_order = (_RIGHT - _LEFT) / len(marks)
    if apart and median(apart) < min(_READABLE_PERCENT, in_order):
        return None
    return times


def _numbers_as_ticks(numbers: list[int], places: list[float]) -> list[tuple[float, str]]:
    step = next((step for step in _STEPS_CALLS if len(numbers) / step <= _TICKS), len(numbers))
    ticks = [(places[0], f"call {numbers[0]:,}")]
    for number, place in zip(numbers, places, strict=True):
        if number % step == 0 and place - ticks[-1][0] >= _TICKS_APART:
            ticks.append((place, f"{number:,}"))
    return ticks

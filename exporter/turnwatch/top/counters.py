"""By how much counters rise, over restarts and gaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from turnwatch.top.quantities import BY_METRIC, COUNTERS
from turnwatch.top.reading import Group, Sample, Table

MAX_REMEMBERED: Final = 200_000
"""Series whose last value is kept. Past it, those that are no longer there are forgotten, and what they rose by."""

_STEPS: Final = 12
_COUNTERS: Final = frozenset(quantity.metric for quantity in COUNTERS)
_Series = tuple[str, tuple[tuple[str, str], ...]]


class Counters:
    """Rises of one source's counters.

    What the first look finds is where everything starts. A series that comes later began after it and counts in full;
    one that goes and comes back goes on where it was; a value below the last one is a restart and counts from 0.

    Args:
        window_seconds: What rates look back over.
        since_exporters_began: Count what the first look finds as risen from 0, for somebody who looks only once.

    Attributes:
        restarts: Looks at which some series had begun again.
    """

    def __init__(self, window_seconds: float, *, since_exporters_began: bool = False) -> None:
        self._window = window_seconds
        self._counts_from_zero = since_exporters_began
        self._last: dict[_Series, float] = {}
        self._past: list[tuple[float, Table]] = []
        self._risen: Table = {}
        self._present: set[tuple[str, Group]] = set()
        self.restarts = 0

    def take(self, at: float, samples: Iterable[Sample]) -> None:
        """Take in what the source holds.

        Args:
            at: When, by a clock that only goes forward.
            samples: Its series; those of other metrics are passed over.
        """
        is_baseline = not self._past and not self._counts_from_zero
        present: dict[_Series, float] = {}
        self._present = set()
        has_restarted = False
        for sample in samples:
            if sample.name not in _COUNTERS:
                continue
            group = BY_METRIC[sample.name].group_of(sample.labels)
            if group is None:
                continue
            series = (sample.name, tuple(sorted(sample.labels.items())))
            present[series] = sample.value
            self._present.add((sample.name, group))
            before = sample.value if is_baseline else self._last.get(series, 0.0)
            fell = sample.value < before
            has_restarted |= fell
            column = self._risen.setdefault(sample.name, {})
            column[group] = column.get(group, 0.0) + (sample.value if fell else sample.value - before)
        self.restarts += has_restarted
        if len(self._last) > MAX_REMEMBERED:
            self._last = present
            self._risen = self._of_present(self._risen)
        else:
            self._last.update(present)
        self._remember(at)

    def _remember(self, at: float) -> None:
        copy = self.tallies()
        past = self._past
        # A dozen marks over the window are enough, however often the source is read.
        if len(past) >= 3 and at - past[-2][0] < self._window / _STEPS:
            past[-1] = (at, copy)
        else:
            past.append((at, copy))
        while len(past) > 2 and past[1][0] <= at - self._window:
            del past[0]

    def tallies(self) -> Table:
        """Rise of each group since the first look, or since the exporters began."""
        return {metric: dict(column) for metric, column in self._risen.items()}

    @property
    def span_seconds(self) -> float:
        """What ``rates`` looks back over now: 0 after the first look, the window in the end."""
        return self._past[-1][0] - self._past[0][0] if self._past else 0.0

    def rates(self) -> Table:
        """Rise a second over the window of each group that is still there; empty after the first look."""
        span = self.span_seconds
        if span <= 0:
            return {}
        then = self._past[0][1]
        return {
            metric: {group: (value - then.get(metric, {}).get(group, 0.0)) / span for group, value in column.items()}
            for metric, column in self._of_present(self._risen).items()
        }

    def _of_present(self, table: Table) -> Table:
        return {
            metric: {group: value for group, value in column.items() if (metric, group) in self._present}
            for metric, column in table.items()
        }

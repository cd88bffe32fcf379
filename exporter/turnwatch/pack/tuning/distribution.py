"""How often each value occurred, in memory that does not grow with the number of values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

_DIGITS: Final = 3
# A file may say anything. What is outside is no number of calls, tokens, dollars or seconds.
_SMALLEST: Final = 1e-9
_LARGEST: Final = 1e15


def on_grid(value: float) -> float:
    """The smallest number of three significant digits that is not below ``value``.

    Whole numbers under a thousand stay as they are. For a threshold of three digits or fewer, "more than" says the
    same of a value and of its place on the grid, so such thresholds are counted exactly.
    """
    if value <= 0:
        return 0.0
    value = min(max(value, _SMALLEST), _LARGEST)
    exponent = math.floor(math.log10(value)) - (_DIGITS - 1)
    scale = 10.0**exponent
    # Without the tolerance 0.3, which is a little more than three tenths, would be 0.301.
    return round(math.ceil(value / scale - 1e-9) * scale, max(0, -exponent))


class Distribution:
    """Counts of non-negative values, to three significant digits; there are 900 of those in each power of ten."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()

    def __len__(self) -> int:
        return self._counts.total()

    def add(self, value: float, times: int = 1) -> None:
        """Count a value; with negative ``times``, take it back."""
        place = on_grid(value)
        self._counts[place] += times
        if not self._counts[place]:
            del self._counts[place]

    @classmethod
    def of_all(cls, parts: Iterable[Distribution]) -> Distribution:
        """Several distributions as one."""
        whole = cls()
        for part in parts:
            whole._counts.update(part._counts)
        return whole

    def past(self, threshold: float) -> int:
        """How many values are more than ``threshold``."""
        return sum(count for value, count in self._counts.items() if value > threshold)

    def quantile(self, share: float) -> float:
        """The smallest value that at least this share of all values do not pass; 0 of none."""
        wanted = max(1, math.ceil(share * len(self) - 1e-9))
        seen = 0
        for value, count in self:
            seen += count
            if seen >= wanted:
                return value
        return 0.0

    @property
    def largest(self) -> float:
        """The largest value; 0 of none."""
        return max(self._counts, default=0.0)

    def __iter__(self) -> Iterator[tuple[float, int]]:
        """Values with their counts, smallest first."""
        return iter(sorted(self._counts.items()))

"""What the core asks of a metrics backend. The backends live in the metrics room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Exemplar = Mapping[str, str]


class Counter(Protocol):
    """One counter series."""

    def inc(self, amount: float = 1.0, exemplar: Exemplar | None = None) -> None:
        """Add to the series. The caller holds the watch's lock."""


class Histogram(Protocol):
    """One histogram series."""

    def observe(self, value: float, exemplar: Exemplar | None = None) -> None:
        """Add one observation. The caller holds the watch's lock."""


class Meter(Protocol):
    """Hands out series by the catalogue's metric name and label values in the catalogue's order.

    Raises:
        KeyError: the name is not in the catalogue.
    """

    def counter(self, name: str, *labels: str) -> Counter:
        """The counter series of these label values, born at 0."""

    def histogram(self, name: str, *labels: str) -> Histogram:
        """The histogram series of these label values."""


class _NullSeries:
    def inc(self, amount: float = 1.0, exemplar: Exemplar | None = None) -> None:
        pass

    def observe(self, value: float, exemplar: Exemplar | None = None) -> None:
        pass


class NullMeter:
    """Counts nowhere: for reading files, where only the turns' own numbers matter."""

    _series = _NullSeries()

    def counter(self, name: str, *labels: str) -> Counter:
        """A series that forgets."""
        return self._series

    def histogram(self, name: str, *labels: str) -> Histogram:
        """A series that forgets."""
        return self._series

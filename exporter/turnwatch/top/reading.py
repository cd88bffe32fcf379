"""What one look at a source gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from turnwatch.errors import TurnwatchError

Group = tuple[str, ...]
Table = dict[str, dict[Group, float]]
"""Values by metric and by the label values that a Quantity keeps apart."""

Kind = Literal["metrics", "prometheus"]


class Sample(NamedTuple):
    """One series' value."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source holds at one moment.

    Attributes:
        levels: Gauges.
        rates: Counters per second, over ``window_seconds``; empty while there is nothing to compare with.
        tallies: By how much counters have risen since the source was first read, or since the exporters began.
        totals: What the counters of verdicts stand at, since their exporters began.
        window_seconds: What the rates look back over.
        begun: For each group of verdicts the Unix time of its first and how many there are by now, where it is known.
        restarts: How often a counter began again since the source was first read.
        targets_up, targets_down: Exporters behind the source.
    """

    levels: Table = field(default_factory=dict)
    rates: Table = field(default_factory=dict)
    tallies: Table = field(default_factory=dict)
    totals: Table = field(default_factory=dict)
    window_seconds: float = 0.0
    begun: dict[Group, tuple[float, float]] = field(default_factory=dict)
    restarts: int = 0
    targets_up: int = 1
    targets_down: int = 0


class SourceError(TurnwatchError):
    """A source did not answer, or not with what was asked for. One line that names the source."""


class Source(Protocol):
    """Something that can be read again and again, from one thread."""

    address: str

    @property
    def kind(self) -> Kind | None:
        """What it is; None as long as that is not known."""

    def read(self) -> Reading:
        """Look at it.

        Raises:
            SourceError: It did not answer, or not with turnwatch's metrics.
        """
        ...

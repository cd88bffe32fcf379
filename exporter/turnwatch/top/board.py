"""Everything that is shown at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from turnwatch.top.agent_rows import AgentRows
from turnwatch.top.folding import merged
from turnwatch.top.journal import Event, Journal
from turnwatch.top.marks import Marks, State
from turnwatch.top.polling import SourceState
from turnwatch.top.reading import Reading
from turnwatch.top.rows import AgentRow, ToolRow
from turnwatch.top.tool_rows import tool_rows


@dataclass(frozen=True, slots=True)
class Board:
    """What is shown.

    Attributes:
        at: Unix time.
        sources: The state of each source.
        window_seconds: What rates look back over; 0 while there are none.
        agents, tools: Their rows, in no order.
        events: What happened, latest first.
        unpriced_calls: Model calls since the start that count as no dollars, for nobody knows the price.
    """

    at: float
    sources: tuple[SourceState, ...] = ()
    window_seconds: float = 0.0
    agents: tuple[AgentRow, ...] = ()
    tools: tuple[ToolRow, ...] = ()
    events: tuple[Event, ...] = ()
    unpriced_calls: int = 0

    @property
    def usd_per_hour(self) -> float | None:
        """Spend rate of all agents."""
        known = [row.usd_per_hour for row in self.agents if row.usd_per_hour is not None]
        return sum(known) if known else None

    @property
    def spent_usd(self) -> float:
        """Dollars since the start."""
        return sum(row.spent_usd for row in self.agents)

    @property
    def open_turns(self) -> int:
        """Turns that are open now."""
        return round(sum(row.open_turns or 0.0 for row in self.agents))

    def in_state(self, state: State) -> int:
        """How many agents are in this state."""
        return sum(row.state == state for row in self.agents)

    @property
    def up(self) -> int:
        """Exporters that answer."""
        return sum(reading.targets_up for reading in _readings(self.sources))

    @property
    def down(self) -> int:
        """Exporters, and other sources, that do not."""
        silent = sum(state.error is not None for state in self.sources)
        return silent + sum(reading.targets_down for reading in _readings(self.sources))


def board_of(states: Sequence[SourceState], journal: Journal, marks: Marks, at: float) -> Board:
    """Put together what the sources say.

    Args:
        states: The sources.
        journal: What happened so far.
        marks: From which numbers on an agent is worth a look.
        at: Unix time.
    """
    up = _readings(states)
    levels = merged(reading.levels for reading in up)
    rates = merged(reading.rates for reading in up)
    # What was spent stays spent when its source goes down.
    tallies = merged(state.reading.tallies for state in states if state.reading is not None)
    totals = merged(state.reading.totals for state in states if state.reading is not None)
    tools = tool_rows(levels, rates, marks)
    agents = AgentRows(levels, rates, tallies, totals, tools, journal, marks, at).all()
    return Board(
        at=at,
        sources=tuple(states),
        window_seconds=max((reading.window_seconds for reading in up), default=0.0),
        agents=tuple(agents),
        tools=tuple(tools),
        events=tuple(reversed(journal.events)),
        unpriced_calls=round(sum(tallies.get("agent_unpriced_model_calls_total", {}).values())),
    )


def _readings(states: Sequence[SourceState]) -> list[Reading]:
    """What the sources that are up say."""
    return [state.reading for state in states if state.is_up and state.reading is not None]

"""The rows of the screen's tables."""

from __future__ import annotations

from dataclasses import dataclass

from turnwatch.top.marks import State


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool of one agent. None: not known yet, or not any more.

    Attributes:
        agent, tool: Their names.
        is_repeating: Whether its identical calls are past their threshold.
        is_stale: Whether those are at which nothing changed in between.
        identical_calls: Most identical calls of a turn in the trailing window.
        stale_calls: The same, where nothing changed in between.
        repeats_per_minute, calls_per_minute, errors_per_minute: Rates.
    """

    agent: str
    tool: str
    is_repeating: bool = False
    is_stale: bool = False
    identical_calls: float | None = None
    stale_calls: float | None = None
    repeats_per_minute: float | None = None
    calls_per_minute: float | None = None
    errors_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent, over all sources. None: not known yet, or not any more.

    Attributes:
        agent: Its name.
        state: STUCK, WARN, busy (a turn is open), idle, or gone (no source that is up has it).
        open_turns: Turns that are open now.
        oldest_seconds: Age of the oldest.
        iterations: Most model calls of a turn in the trailing window.
        identical_calls, stale_calls: As of its worst tool.
        is_repeating, is_stale: Whether those of a tool are past their threshold.
        worst_tool: The tool that repeats itself most; "" where none does.
        repeats_per_minute, calls_per_minute, errors_per_minute, tokens_per_minute, usd_per_hour: Rates.
        turn_usd: Dollars of the dearest turn in the trailing window.
        spent_usd, stuck_verdicts, warn_verdicts, guard_stops: Since the start.
        stuck_verdicts_total, warn_verdicts_total: What the counters stand at, since their exporters began.
    """

    agent: str
    state: State = "idle"
    open_turns: float | None = None
    oldest_seconds: float | None = None
    iterations: float | None = None
    identical_calls: float | None = None
    stale_calls: float | None = None
    worst_tool: str = ""
    repeats_per_minute: float | None = None
    calls_per_minute: float | None = None
    errors_per_minute: float | None = None
    tokens_per_minute: float | None = None
    usd_per_hour: float | None = None
    turn_usd: float | None = None
    spent_usd: float = 0.0
    stuck_verdicts: int = 0
    warn_verdicts: int = 0
    guard_stops: int = 0
    stuck_verdicts_total: int = 0
    warn_verdicts_total: int = 0
    is_repeating: bool = False
    is_stale: bool = False

"""The columns of the agents' table: what stands in them, and how rows are put in order by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from turnwatch.top.marks import RANK
from turnwatch.top.numbers import age, count, dollars, per_minute
from turnwatch.top.rows import AgentRow, ToolRow


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        key: Its name for programs and on the command line.
        title: What stands above it.
        width: Cells, at least.
        says: What it means, for the help.
        text: What stands in it.
        order: What rows are put in order by. None comes last.
        is_text: Left-aligned, may grow, and starts with the smallest.
    """

    key: str
    title: str
    width: int
    says: str
    text: Callable[[AgentRow], str]
    order: Callable[[AgentRow], Any]
    is_text: bool = False


COLUMNS: Final = (
    Column(
        "state",
        "STATE",
        5,
        "STUCK, WARN, busy, idle, or gone",
        lambda row: row.state,
        lambda row: (RANK[row.state], row.stale_calls or 0.0 if RANK[row.state] > RANK["busy"] else 0.0),
    ),
    Column("agent", "AGENT", 12, "its name", lambda row: row.agent or "(no name)", lambda row: row.agent, is_text=True),
    Column("open", "OPEN", 4, "open turns", lambda row: count(row.open_turns), lambda row: row.open_turns),
    Column(
        "oldest",
        "OLDEST",
        6,
        "age of the oldest open turn",
        lambda row: age(row.oldest_seconds),
        lambda row: row.oldest_seconds,
    ),
    Column(
        "iterations",
        "ITER",
        4,
        "most model calls of a turn",
        lambda row: count(row.iterations),
        lambda row: row.iterations,
    ),
    Column(
        "same",
        "SAME",
        4,
        "most identical calls of a turn",
        lambda row: count(row.identical_calls) + ("!" if row.is_repeating else ""),
        lambda row: row.identical_calls,
    ),
    Column(
        "stale",
        "STALE",
        5,
        "the same, the result too",
        lambda row: count(row.stale_calls) + ("!" if row.is_stale else ""),
        lambda row: row.stale_calls,
    ),
    Column("tool", "TOOL", 12, "the tool of these calls", lambda row: row.worst_tool, lambda row: row.worst_tool, True),
    Column(
        "repeats",
        "REP/m",
        5,
        "repeated calls a minute",
        lambda row: per_minute(row.repeats_per_minute),
        lambda row: row.repeats_per_minute,
    ),
    Column(
        "usd_per_hour",
        "$/h",
        5,
        "dollars an hour",
        lambda row: dollars(row.usd_per_hour),
        lambda row: row.usd_per_hour,
    ),
    Column(
        "calls",
        "CALL/m",
        6,
        "tool calls a minute",
        lambda row: per_minute(row.calls_per_minute),
        lambda row: row.calls_per_minute,
    ),
    Column(
        "errors",
        "ERR/m",
        5,
        "failed tool calls a minute",
        lambda row: per_minute(row.errors_per_minute),
        lambda row: row.errors_per_minute,
    ),
    Column(
        "tokens",
        "TOK/m",
        6,
        "tokens a minute, in and out",
        lambda row: per_minute(row.tokens_per_minute),
        lambda row: row.tokens_per_minute,
    ),
    Column(
        "spent", "SPENT", 5, "dollars since top began", lambda row: dollars(row.spent_usd), lambda row: row.spent_usd
    ),
    Column("turn_usd", "TURN$", 5, "the dearest turn", lambda row: dollars(row.turn_usd), lambda row: row.turn_usd),
    Column(
        "stuck",
        "#STUCK",
        6,
        "stuck verdicts since then",
        lambda row: str(row.stuck_verdicts),
        lambda row: row.stuck_verdicts,
    ),
    Column(
        "warn", "#WARN", 5, "warnings since then", lambda row: str(row.warn_verdicts), lambda row: row.warn_verdicts
    ),
    Column(
        "stops", "#STOP", 5, "guard stops since then", lambda row: str(row.guard_stops), lambda row: row.guard_stops
    ),
)
"""In the order in which they give way on a narrow screen, the last first."""

KEYS: Final = tuple(column.key for column in COLUMNS)


def in_order(rows: Sequence[AgentRow], key: str, *, is_reversed: bool = False) -> list[AgentRow]:
    """Rows by one column: numbers from the largest, names from the smallest, what is not known last.

    Equal rows are by name, so that they do not dance from one look to the next.
    """
    column = COLUMNS[KEYS.index(key)]
    steady = sorted(rows, key=lambda row: row.agent)
    known = [row for row in steady if column.order(row) not in (None, "")]
    unknown = [row for row in steady if column.order(row) in (None, "")]
    from_largest = not column.is_text
    # reverse=True keeps equal rows in their order, too.
    return sorted(known, key=column.order, reverse=from_largest != is_reversed) + unknown


def worst_tools(tools: Sequence[ToolRow]) -> list[ToolRow]:
    """Tools by how much they repeat themselves, then by errors and calls."""
    return sorted(
        tools,
        key=lambda row: (
            -(row.stale_calls or 0.0),
            -(row.identical_calls or 0.0),
            -(row.repeats_per_minute or 0.0),
            -(row.errors_per_minute or 0.0),
            -(row.calls_per_minute or 0.0),
            row.agent,
            row.tool,
        ),
    )

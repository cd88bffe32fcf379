"""The three panes: a heading and rows of exactly the width of the screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from turnwatch.top.board import Board
from turnwatch.top.cells import fitted
from turnwatch.top.columns import COLUMNS, KEYS, Column, in_order, worst_tools
from turnwatch.top.filtering import matches
from turnwatch.top.journal import Event
from turnwatch.top.numbers import count, per_minute, share
from turnwatch.top.rows import AgentRow, ToolRow
from turnwatch.top.view import Pane, View

_HEADING: Final = "reverse"
_STATE_STYLES: Final = {"STUCK": "bold red", "WARN": "yellow", "busy": "green", "idle": "dim", "gone": "dim"}
_EVENT_STYLES: Final = {
    "stuck": "bold red",
    "warn": "yellow",
    "observe": "dim",
    "stop": "bold magenta",
    "limit": "yellow",
    "source": "cyan",
}
_EVENT_WORDS: Final = {
    "stuck": "STUCK",
    "warn": "WARN",
    "observe": "note",
    "stop": "STOP",
    "limit": "LIMIT",
    "source": "source",
}
_FIXED_COLUMNS: Final = 2  # state and agent stay when the others are shifted
_TOOL_NUMBERS: Final = ("SAME", "STALE", "REP/m", "CALL/m", "ERR/m", "ERR%")
_NUMBER_WIDTH: Final = 6
_MIN_NAME: Final = 12
_MAX_GROWTH: Final = 20


@dataclass(frozen=True, slots=True)
class PaneLines:
    """A pane. Its rows are drawn when they are asked for: there may be thousands that nobody sees.

    Attributes:
        heading: Its first line.
        height: How many rows it has.
    """

    heading: Text
    height: int
    _row: Callable[[int], Text]

    def rows(self, first: int, height: int) -> list[Text]:
        """Draw ``height`` rows from the row ``first`` on, or as many as there are."""
        return [self._row(at) for at in range(first, min(first + height, self.height))]


def panes_of(board: Board, view: View, width: int) -> dict[Pane, PaneLines]:
    """Every pane of the board as the user has chosen to see it."""
    agents = in_order(
        [row for row in board.agents if matches(view.filter, row)], view.sort, is_reversed=view.is_reversed
    )
    tools = worst_tools([row for row in board.tools if matches(view.filter, row)])
    events = [event for event in board.events if matches(view.filter, event)]
    return {
        "agents": _agents(agents, view, width),
        "tools": _tools(tools, width),
        "events": _events(events, width),
    }


def _agents(rows: Sequence[AgentRow], view: View, width: int) -> PaneLines:
    columns, widths, are_more = _columns_that_fit(view, width)
    heading = Text(style=_HEADING, no_wrap=True)
    for column, cells in zip(columns, widths, strict=True):
        heading.append(" " if heading else "")
        title = fitted(column.title, cells, is_right=_is_number(column))
        heading.append(title, style="bold underline" if column.key == view.sort else "")
    heading.append(fitted(">" if are_more else "", width - heading.cell_len, is_right=True))

    def drawn(at: int) -> Text:
        row = rows[at]
        line = Text(no_wrap=True, style="dim" if row.state == "gone" else "")
        for column, cells in zip(columns, widths, strict=True):
            style = _STATE_STYLES[row.state] if column.key == "state" else "bold" if column.key == view.sort else ""
            line.append(" " if line else "")
            line.append(fitted(column.text(row), cells, is_right=_is_number(column)), style=style)
        return line

    return PaneLines(heading, len(rows), drawn)


def _is_number(column: Column) -> bool:
    return not column.is_text and column.key != "state"


def _columns_that_fit(view: View, width: int) -> tuple[list[Column], list[int], bool]:
    """The columns to show with their widths, and whether there are more to the right."""
    fixed, others = [*COLUMNS[:_FIXED_COLUMNS]], [*COLUMNS[_FIXED_COLUMNS + view.shift :]]
    chosen = _as_many_as_fit([*fixed, *others], width)
    sorted_by = COLUMNS[KEYS.index(view.sort)]
    if sorted_by not in chosen:  # what the order comes from must be seen
        fixed.append(sorted_by)
        others = [column for column in others if column is not sorted_by]
        chosen = _as_many_as_fit([*fixed, *others], width)
    spare = width - _width_of(chosen) - 1
    growing = sum(column.is_text for column in chosen) or 1
    extra = min(_MAX_GROWTH, max(0, spare) // growing)
    widths = [column.width + (extra if column.is_text else 0) for column in chosen]
    return chosen, widths, len(chosen) < len(fixed) + len(others)


def _as_many_as_fit(columns: Sequence[Column], width: int) -> list[Column]:
    chosen: list[Column] = []
    for column in columns:
        if _width_of([*chosen, column]) >= width:  # a cell is left for the sign that there are more
            break
        chosen.append(column)
    return chosen


def _width_of(columns: Sequence[Column]) -> int:
    return sum(column.width + 1 for column in columns) - 1


def _tools(rows: Sequence[ToolRow], width: int) -> PaneLines:
    room = width - len(_TOOL_NUMBERS) * (_NUMBER_WIDTH + 1)
    numbers = len(_TOOL_NUMBERS)
    while numbers > 2 and room < 2 * _MIN_NAME + 1:
        numbers -= 1
        room += _NUMBER_WIDTH + 1
    tool_width = min(32, (room - 1) // 2)
    agent_width = min(32, room - 1 - tool_width)

    def line(tool: str, agent: str, values: Sequence[str]) -> str:
        shown = (fitted(value, _NUMBER_WIDTH, is_right=True) for value in values[:numbers])
        return " ".join([fitted(tool, tool_width), fitted(agent, agent_width), *shown])

    heading = Text(fitted(line("WORST TOOLS", "AGENT", _TOOL_NUMBERS), width), style=_HEADING, no_wrap=True)

    def drawn(at: int) -> Text:
        row = rows[at]
        values = (
            count(row.identical_calls) + ("!" if row.is_repeating else ""),
            count(row.stale_calls) + ("!" if row.is_stale else ""),
            per_minute(row.repeats_per_minute),
            per_minute(row.calls_per_minute),
            per_minute(row.errors_per_minute),
            share(row.errors_per_minute, row.calls_per_minute),
        )
        style = "bold red" if row.is_stale else "yellow" if row.is_repeating else ""
        return Text(fitted(line(row.tool, row.agent, values), width), style=style, no_wrap=True)

    return PaneLines(heading, len(rows), drawn)


def _events(events: Sequence[Event], width: int) -> PaneLines:
    heading = Text(fitted("TIME     LATEST", width), style=_HEADING, no_wrap=True)
    return PaneLines(heading, len(events), lambda at: _event_line(events[at], width))


def _event_line(event: Event, width: int) -> Text:
    line = Text(no_wrap=True)
    line.append(time.strftime("%H:%M:%S ", time.localtime(event.at)))
    line.append(fitted(_EVENT_WORDS[event.sort], 7), style=_EVENT_STYLES[event.sort])
    times = f" x{event.count}{' since then' if event.is_since else ''}" if event.count > 1 else ""
    names = [name for name in (event.agent, event.tool) if name]
    each = max(8, min(24, (width - 16 - len(event.text) - len(times)) // 2 - 2))
    for name in names:
        line.append(fitted(name, each) + "  ")
    line.append(fitted(event.text + times, max(0, width - line.cell_len)))
    line.truncate(width)
    return line

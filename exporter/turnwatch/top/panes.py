"""The three panes: a heading and rows of exactly the width of the screen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from turnwatch.top.board import Board
from turnwatch.top.cells import fitted
from turnwatch.top.columns import COLUMNS, Column, in_order, worst_tools
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


@dataclass(frozen=True, slots=True)
class PaneLines:
    """A pane.

    Attributes:
        heading: Its first line.
        rows: All its rows, seen or not.
    """

    heading: Text
    rows: list[Text]


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
    lines = []
    for row in rows:
        line = Text(no_wrap=True, style="dim" if row.state == "gone" else "")
        for column, cells in zip(columns, widths, strict=True):
            style = _STATE_STYLES[row.state] if column.key == "state" else "bold" if column.key == view.sort else ""
            line.append(" " if line else "")
            line.append(fitted(column.text(row), cells, is_right=_is_number(column)), style=style)
        lines.append(line)
    return PaneLines(heading, lines)


def _is_number(column: Column) -> bool:
    return not column.is_text and column.key != "state"


def _columns_that_fit(view: View, width: int) -> tuple[list[Column], list[int], bool]:
    """The columns to show with their widths, and whether there are more to the right."""
    wanted = [*COLUMNS[:_FIXED_COLUMNS], *COLUMNS[_FIXED_COLUMNS + view.shift :]]
    chosen: list[Column] = []
    used = 0
    for column in wanted:
        if used + column.width + (1 if chosen else 0) > width:
            break
        used += column.width + (1 if chosen else 0)
        chosen.append(column)
    spare = width - used - 2  # for the sign that there are more
    growing = [column for column in chosen if column.is_text]
    widths = []
    for column in chosen:
        extra = min(20, max(0, spare) // len(growing)) if column.is_text else 0
        widths.append(column.width + extra)
    return chosen, widths, len(chosen) < len(wanted)


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
    lines = []
    for row in rows:
        values = (
            count(row.identical_calls),
            count(row.stale_calls),
            per_minute(row.repeats_per_minute),
            per_minute(row.calls_per_minute),
            per_minute(row.errors_per_minute),
            share(row.errors_per_minute, row.calls_per_minute),
        )
        style = "bold red" if row.is_stale else "yellow" if row.is_repeating else ""
        lines.append(Text(fitted(line(row.tool, row.agent, values), width), style=style, no_wrap=True))
    return PaneLines(heading, lines)


def _events(events: Sequence[Event], width: int) -> PaneLines:
    heading = Text(fitted("TIME     LATEST", width), style=_HEADING, no_wrap=True)
    return PaneLines(heading, [_event_line(event, width) for event in events])


def _event_line(event: Event, width: int) -> Text:
    line = Text(no_wrap=True)
    line.append(time.strftime("%H:%M:%S ", time.localtime(event.at)))
    line.append(fitted(_EVENT_WORDS[event.sort], 7), style=_EVENT_STYLES[event.sort])
    times = f" x{event.count}" if event.count > 1 else ""
    names = [name for name in (event.agent, event.tool) if name]
    each = max(8, min(24, (width - 16 - len(event.text) - len(times)) // 2 - 2))
    for name in names:
        line.append(fitted(name, each) + "  ")
    line.append(fitted(event.text + times, max(0, width - line.cell_len)))
    line.truncate(width)
    return line

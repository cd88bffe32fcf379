"""The board once, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from rich.text import Text

from turnwatch.top.board import Board
from turnwatch.top.columns import in_order, worst_tools
from turnwatch.top.filtering import matches
from turnwatch.top.frame import head_of
from turnwatch.top.panes import panes_of
from turnwatch.top.view import View

COUNTED_SINCE: Final = "since the exporters began"
"""From when on somebody who looks once counts: there is no earlier look to count from."""


def as_lines(board: Board, view: View, width: int) -> list[Text]:
    """The whole board as lines: what the screen shows, without its end."""
    lines = head_of(board, view, width, COUNTED_SINCE)
    for pane in panes_of(board, view, width).values():
        lines += [Text(), pane.heading, *pane.rows(0, pane.height)]
    return lines


def as_json(board: Board, view: View) -> dict[str, Any]:
    """The whole board as JSON data. Rates are null where they are not known."""
    agents = [row for row in board.agents if matches(view.filter, row)]
    return {
        "at": board.at,
        "window_seconds": board.window_seconds,
        "counted": COUNTED_SINCE,
        "sources": [
            {"address": state.address, "kind": state.kind, "up": state.is_up, "error": state.error}
            for state in board.sources
        ],
        "up": board.up,
        "down": board.down,
        "stuck_agents": board.in_state("STUCK"),
        "open_turns": board.open_turns,
        "usd_per_hour": board.usd_per_hour,
        "spent_usd": board.spent_usd,
        "unpriced_calls": board.unpriced_calls,
        "agents": [asdict(row) for row in in_order(agents, view.sort, is_reversed=view.is_reversed)],
        "tools": [asdict(row) for row in worst_tools([row for row in board.tools if matches(view.filter, row)])],
        "events": [asdict(event) for event in board.events if matches(view.filter, event)],
    }

"""The whole screen as lines of text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from turnwatch.core.printable import many
from turnwatch.top.board import Board
from turnwatch.top.cells import fitted
from turnwatch.top.columns import COLUMNS, KEYS
from turnwatch.top.numbers import dollars
from turnwatch.top.panes import PaneLines, panes_of
from turnwatch.top.view import KEY_HELP, PANES, Pane, View

_MIN_PANE_ROWS: Final = 3
_ROOM_FOR_ALL_PANES: Final = 11
_FOOTER: Final = "q quit  s sort  r reverse  / filter  p pause  Tab pane  arrows scroll  ? help"
_SHORT_FOOTER: Final = "q quit  s sort  / filter  p pause  Tab pane  ? help"
_KEY_WIDTH: Final = 18


@dataclass(frozen=True, slots=True)
class Frame:
    """A screen.

    Attributes:
        lines: From top to bottom; as many as it is high.
        offset: The first row that is shown of the pane that is scrolled: the view's own, or the last that there is.
    """

    lines: list[Text]
    offset: int


def frame_of(board: Board, view: View, width: int, height: int) -> Frame:
    """Draw the screen.

    Args:
        board: What is to be shown.
        view: What the user has chosen to see of it.
        width: Cells of the terminal from left to right.
        height: Its lines.
    """
    if view.is_helping:
        return _help(view, width, height)
    head = head_of(board, view, width)
    footer = _footer(view, width)
    room = max(1, height - len(head) - 1)
    panes = panes_of(board, view, width)
    shown: tuple[Pane, ...] = PANES if room >= _ROOM_FOR_ALL_PANES else (view.pane,)
    heights = _heights(panes, shown, view.pane, room - len(shown))
    offset = max(0, min(view.offset, panes[view.pane].height - heights[view.pane]))
    lines = list(head)
    for pane in shown:
        first = offset if pane == view.pane else 0
        lines.append(panes[pane].heading)
        part = panes[pane].rows(first, heights[pane]) or [
            Text(fitted(_nothing(pane, view), width), style="dim", no_wrap=True)
        ]
        lines += part[: heights[pane]]
        lines += [Text()] * (heights[pane] - len(part))
    lines = lines[: height - 1]
    lines += [Text()] * (height - 1 - len(lines))
    return Frame([*lines, footer], offset)


def head_of(board: Board, view: View, width: int, since: str = "since start") -> list[Text]:
    """The lines above the panes: sources, what rates look back over, totals, and the first fault of a source.

    Args:
        board: What is to be shown.
        view: What the user has chosen to see of it.
        width: Cells of the terminal from left to right.
        since: From when on dollars are counted.
    """
    stuck, warned = board.in_state("STUCK"), board.in_state("WARN")
    window = f"rates over {board.window_seconds:.0f} s" if board.window_seconds else "no rates yet"
    order = f"by {COLUMNS[KEYS.index(view.sort)].title}{' reversed' if view.is_reversed else ''}"
    sources = [
        _Part(1, "turnwatch top", "bold"),
        _Part(4, time.strftime("%H:%M:%S", time.localtime(board.at))),
        _Part(2, f"sources {board.up} up"),
        _Part(0, f"{board.down} DOWN" if board.down else "", "bold red"),
        _Part(5, window),
        _Part(6, order),
        _Part(3, f'filter "{fitted(view.filter, min(12, len(view.filter)))}"' if view.filter else "", "bold"),
        _Part(0, "PAUSED" if view.is_paused else "", "bold reverse"),
    ]
    totals = [
        _Part(0, f"{stuck} stuck", "bold red" if stuck else ""),
        _Part(2, f"{warned} warn", "yellow" if warned else ""),
        _Part(4, many(len(board.agents), "agent")),
        _Part(5, many(board.open_turns, "open turn")),
        _Part(1, f"${dollars(board.usd_per_hour)}/h", "bold"),
        _Part(3, f"${dollars(board.spent_usd)} {since}"),
        _Part(6, f"{board.unpriced_calls} calls without a price" if board.unpriced_calls else ""),
    ]
    lines = [_line_of(sources, width), _line_of(totals, width)]
    errors = [state.error for state in board.sources if state.error is not None]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        lines.append(Text(fitted(f"down: {errors[0]}", width - len(more)).rstrip() + more, style="red"))
    return lines


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a line. The one with the highest ``rank`` gives way first where there is no room for all."""

    rank: int
    text: str
    style: str = ""


def _line_of(parts: list[_Part], width: int) -> Text:
    kept = [part for part in parts if part.text]
    while len(kept) > 1 and sum(cell_len(part.text) + 2 for part in kept) - 2 > width:
        kept.remove(max(kept, key=lambda part: part.rank))
    line = Text("  ", no_wrap=True).join(Text(part.text, style=part.style) for part in kept)
    line.truncate(width)
    return line


def _footer(view: View, width: int) -> Text:
    if view.is_typing:
        text = Text(
            fitted(f"filter: {view.filter}_   Enter keeps it, Esc clears it", width), style="bold", no_wrap=True
        )
    else:
        text = Text(fitted(_FOOTER if width >= len(_FOOTER) else _SHORT_FOOTER, width), style="dim", no_wrap=True)
    return text


def _heights(panes: Mapping[Pane, PaneLines], shown: tuple[Pane, ...], focused: Pane, room: int) -> dict[Pane, int]:
    """How many rows each pane gets: each a few, the rest to the focused one, what that does not need to the others."""
    needs = {pane: max(1, panes[pane].height) for pane in shown}
    heights = {pane: min(needs[pane], _MIN_PANE_ROWS) for pane in shown}
    for pane in (focused, *shown):
        spare = room - sum(heights.values())
        heights[pane] += max(0, min(spare, needs[pane] - heights[pane]))
    heights[shown[-1]] += max(0, room - sum(heights.values()))
    if len(shown) == 1:
        heights[focused] = max(1, room)
    return heights


def _help(view: View, width: int, height: int) -> Frame:
    keys = [f"{fitted(key, _KEY_WIDTH)} {says}" for key, says in KEY_HELP]
    columns = [f"{fitted(column.title, _KEY_WIDTH)} {column.says}" for column in COLUMNS]
    lines = ["turnwatch top: keys", *keys, "", "Columns", *columns]
    room = height - 1
    offset = max(0, min(view.offset, len(lines) - room))
    shown = [Text(fitted(line, width), no_wrap=True) for line in lines[offset : offset + room]]
    shown += [Text()] * (room - len(shown))
    more = "  up, down: scroll" if len(lines) > room else ""
    return Frame([*shown, Text(fitted(f"? or Esc: back{more}", width), style="dim", no_wrap=True)], offset)


def _nothing(pane: Pane, view: View) -> str:
    if view.filter:
        return "nothing fits the filter"
    return {"agents": "no agent has opened a turn yet", "tools": "no tool", "events": "nothing yet"}[pane]

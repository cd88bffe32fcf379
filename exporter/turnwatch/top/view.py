"""What the user has chosen to see, and what a key changes about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from turnwatch.top.columns import KEYS

Pane = Literal["agents", "tools", "events"]
PANES: Final[tuple[Pane, ...]] = ("agents", "tools", "events")

_PAGE_ROWS: Final = 10
_MAX_FILTER: Final = 100


@dataclass(frozen=True, slots=True)
class View:
    """What is chosen.

    Attributes:
        sort: Key of the column that agents are put in order by.
        is_reversed: From the other end.
        filter: Text that a row must hold.
        is_typing: Whether keys go into the filter.
        is_paused: Whether the screen stands still.
        is_helping: Whether the help is shown.
        pane: Which pane has the most room and is scrolled.
        offset: First row of that pane, and of the help.
        shift: How many columns of the agents' table are out of sight on the left.
        has_quit: Whether it is over.
    """

    sort: str = "state"
    is_reversed: bool = False
    filter: str = ""
    is_typing: bool = False
    is_paused: bool = False
    is_helping: bool = False
    pane: Pane = "agents"
    offset: int = 0
    shift: int = 0
    has_quit: bool = False


def after(view: View, key: str) -> View:
    """The view after a key, as ``turnwatch.top.keys`` names them."""
    if view.is_typing:
        return _typed(view, key)
    if view.is_helping and key in ("q", "escape", "?", "enter"):
        return replace(view, is_helping=False, offset=0)
    change = _CHANGES.get(key)
    return view if change is None else change(view)


def _typed(view: View, key: str) -> View:
    if key == "enter":
        return replace(view, is_typing=False)
    if key == "escape":
        return replace(view, is_typing=False, filter="")
    if key == "backspace":
        return replace(view, filter=view.filter[:-1], offset=0)
    if len(key) == 1 and key.isprintable() and len(view.filter) < _MAX_FILTER:
        return replace(view, filter=view.filter + key, offset=0)
    return view


def _sorted_by(key: str) -> Callable[[View], View]:
    def change(view: View) -> View:
        return replace(view, sort=key, is_reversed=view.sort == key and not view.is_reversed, offset=0)

    return change


def _next_sort(steps: int) -> Callable[[View], View]:
    def change(view: View) -> View:
        key = KEYS[(KEYS.index(view.sort) + steps) % len(KEYS)]
        return replace(view, sort=key, is_reversed=False, offset=0)

    return change


def _scrolled(rows: int) -> Callable[[View], View]:
    return lambda view: replace(view, offset=max(0, view.offset + rows))


def _shifted(columns: int) -> Callable[[View], View]:
    return lambda view: replace(view, shift=min(max(0, view.shift + columns), len(KEYS) - 3))


def _other_pane(view: View) -> View:
    return replace(view, pane=PANES[(PANES.index(view.pane) + 1) % len(PANES)], offset=0)


def _paused(view: View) -> View:
    return replace(view, is_paused=not view.is_paused)


_CHANGES: Final[dict[str, Callable[[View], View]]] = {
    "q": lambda view: replace(view, has_quit=True),
    "s": _next_sort(1),
    ">": _next_sort(1),
    "S": _next_sort(-1),
    "<": _next_sort(-1),
    "r": lambda view: replace(view, is_reversed=not view.is_reversed),
    "N": _sorted_by("agent"),
    "A": _sorted_by("oldest"),
    "I": _sorted_by("iterations"),
    "L": _sorted_by("stale"),
    "R": _sorted_by("repeats"),
    "C": _sorted_by("calls"),
    "E": _sorted_by("errors"),
    "T": _sorted_by("tokens"),
    "D": _sorted_by("usd_per_hour"),
    "/": lambda view: replace(view, is_typing=True),
    "escape": lambda view: replace(view, filter="", offset=0),
    "p": _paused,
    " ": _paused,
    "tab": _other_pane,
    "?": lambda view: replace(view, is_helping=True, offset=0),
    "h": lambda view: replace(view, is_helping=True, offset=0),
    "up": _scrolled(-1),
    "k": _scrolled(-1),
    "down": _scrolled(1),
    "j": _scrolled(1),
    "pageup": _scrolled(-_PAGE_ROWS),
    "pagedown": _scrolled(_PAGE_ROWS),
    "home": lambda view: replace(view, offset=0),
    "left": _shifted(-1),
    "right": _shifted(1),
}

KEY_HELP: Final = (
    ("q  Ctrl-C", "quit"),
    ("s  > <", "sort by the next column, the one before"),
    ("r", "reverse the order"),
    ("N A I L R C E T D", "sort by name, age, iterations, stale,"),
    ("", "repeats, calls, errors, tokens, dollars"),
    ("/", "filter by text; Enter keeps it, Esc clears it"),
    ("p  space", "pause, go on"),
    ("Tab", "enlarge the next pane"),
    ("arrows  PgUp PgDn", "scroll rows; left, right: columns"),
    ("?", "this help"),
)
"""What the help says of them."""

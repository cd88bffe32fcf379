"""What is drawn, at every size and whatever the names are."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from turnwatch.top.board import Board
from turnwatch.top.columns import COLUMNS, KEYS
from turnwatch.top.frame import frame_of
from turnwatch.top.journal import Event
from turnwatch.top.polling import SourceState
from turnwatch.top.reading import Reading
from turnwatch.top.rows import AgentRow, ToolRow
from turnwatch.top.view import PANES, View

HOSTILE = ["\x1b[2Jgone", "[bold red]x[/]", "two\nlines", "日本語" * 30, "e\u0301" * 50, "\u202egnp", "\ud800", "", " "]


def board(names=("support-bot", "billing-bot"), error=None):
    return Board(
        at=1_796_000_000.0,
        sources=(
            SourceState("http://127.0.0.1:9464", "metrics", Reading(), looks=2),
            *([SourceState("http://127.0.0.1:1", error=error, looks=1)] if error else []),
        ),
        window_seconds=60,
        agents=tuple(
            AgentRow(name, "STUCK", 1, 754, 34, 34, 34, name, 62, 62, 0, 9e5, 130, 0.4, 0.17) for name in names
        ),
        tools=tuple(ToolRow(name, name, True, True, 34, 34, 62, 62, 31) for name in names),
        events=tuple(Event(1_796_000_000.0, "stuck", name, name, "stale_repeat", 2, is_since=True) for name in names),
    )


def text_of(frame):
    return "\n".join(line.plain for line in frame.lines)


@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (60, 20), (140, 40), (300, 100), (40, 10), (20, 5), (1, 1), (9, 3)]
)
@pytest.mark.parametrize("view", [View(), View(is_helping=True), View(is_typing=True, filter="x"), View(shift=15)])
def test_the_screen_is_filled_exactly(width, height, view):
    frame = frame_of(board(HOSTILE, error="http://127.0.0.1:1: Connection refused"), view, width, height)
    assert len(frame.lines) == height
    assert all(cell_len(line.plain) <= width for line in frame.lines)


def test_hostile_names_neither_move_the_cursor_nor_become_markup():
    text = text_of(frame_of(board(HOSTILE), View(), 140, 50))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "[bold red]x[/]" in text
    assert "two�lines" in text


def test_80_columns_say_who_is_stuck_with_which_tool_and_what_it_costs():
    lines = text_of(frame_of(board(), View(), 80, 24)).splitlines()
    assert "1 up" in lines[0]
    assert "2 stuck" in lines[1]
    assert "$260/h" in lines[1]
    row = next(line for line in lines if line.startswith("STUCK support-bot"))
    assert row.split() == ["STUCK", "support-bot", "1", "12m34", "34", "34", "34", "support-bot", "62", "130", "62"]


def test_a_wide_screen_shows_every_column():
    heading = next(
        line for line in text_of(frame_of(board(), View(), 140, 40)).splitlines() if line.startswith("STATE")
    )
    assert heading.split()[-6:] == ["TOK/m", "SPENT", "TURN$", "#STUCK", "#WARN", "#STOP"]


def test_a_narrow_screen_says_that_there_are_more_columns_and_shifts_to_them():
    def heading(view):
        return next(line for line in text_of(frame_of(board(), view, 80, 24)).splitlines() if line.startswith("STATE"))

    assert heading(View()).endswith(">")
    shifted = heading(View(shift=9))
    assert shifted.split()[:2] == ["STATE", "AGENT"]
    assert "#STOP" in shifted
    assert not shifted.endswith(">")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("shift", [0, 4, 15])
def test_the_column_that_rows_are_sorted_by_is_seen(key, shift):
    text = text_of(frame_of(board(), View(sort=key, shift=shift), 80, 24))
    heading = next(line for line in text.splitlines() if line.startswith("STATE"))
    assert COLUMNS[KEYS.index(key)].title in heading.replace(">", " ").split()


def test_tools_past_their_threshold_are_marked_by_more_than_colour():
    tools = (
        ToolRow("a", "t", True, False, 3, 1),
        ToolRow("a", "u", True, True, 4, 4),
        ToolRow("a", "v", False, False, 2, 2),
    )
    lines = text_of(frame_of(Board(at=0.0, tools=tools), View(), 80, 24)).splitlines()
    shown = {line.split()[0]: line.split()[2:4] for line in lines if line.startswith(("t ", "u ", "v "))}
    assert shown == {"t": ["3!", "1"], "u": ["4!", "4!"], "v": ["2", "2"]}


def test_a_source_that_is_down_is_counted_and_named():
    lines = text_of(frame_of(board(error="http://127.0.0.1:1: Connection refused"), View(), 80, 24)).splitlines()
    assert "1 DOWN" in lines[0]
    assert lines[2] == "down: http://127.0.0.1:1: Connection refused"


def test_what_matters_most_stays_on_a_narrow_screen():
    first, second, *_ = text_of(frame_of(board(error="x"), View(is_paused=True, filter="bot"), 46, 20)).splitlines()
    assert "1 DOWN" in first
    assert "PAUSED" in first
    assert "2 stuck" in second
    assert "$260/h" in second


def test_the_pane_with_the_focus_scrolls_and_stops_at_its_end():
    many = board([f"agent-{number:03}" for number in range(100)])
    view = View(sort="agent", offset=1_000)
    frame = frame_of(many, view, 80, 24)
    assert frame.offset < 100
    assert "agent-099" in text_of(frame)
    assert "agent-000" not in text_of(frame).partition("WORST TOOLS")[0]


@pytest.mark.parametrize("pane", PANES)
def test_each_pane_can_have_the_most_room(pane):
    many = board([f"agent-{number:03}" for number in range(100)])
    headings = {"agents": "STATE", "tools": "WORST TOOLS", "events": "TIME"}
    lines = text_of(frame_of(many, View(pane=pane), 80, 24)).splitlines()
    starts = {
        each: next(at for at, line in enumerate(lines) if line.startswith(word)) for each, word in headings.items()
    }
    heights = dict(
        zip(
            PANES,
            (starts["tools"] - starts["agents"], starts["events"] - starts["tools"], 23 - starts["events"]),
            strict=True,
        )
    )
    assert max(heights, key=heights.get) == pane


def test_the_filter_leaves_what_holds_its_text():
    text = text_of(frame_of(board(), View(filter="BILL"), 80, 24))
    assert "billing-bot" in text
    assert "support-bot" not in text
    assert "nothing fits the filter" in text_of(frame_of(board(), View(filter="zzz"), 80, 24))


def test_what_is_not_known_is_no_nought():
    empty = Board(at=time.time(), agents=(AgentRow("a", "gone"),))
    row = next(line for line in text_of(frame_of(empty, View(), 80, 24)).splitlines() if line.startswith("gone"))
    assert "0" not in row
    assert "no rates yet" in text_of(frame_of(empty, View(), 80, 24))


def test_before_the_first_turn_the_screen_says_so():
    assert "no agent has opened a turn yet" in text_of(frame_of(Board(at=0.0), View(), 80, 24))


@pytest.mark.untraced
@settings(max_examples=50)
@given(
    names=st.lists(st.text(max_size=40), max_size=8),
    width=st.integers(1, 160),
    height=st.integers(1, 50),
    view=st.builds(
        View,
        sort=st.sampled_from(KEYS),
        is_reversed=st.booleans(),
        filter=st.text(max_size=3),
        is_typing=st.booleans(),
        pane=st.sampled_from(PANES),
        offset=st.integers(0, 50),
        shift=st.integers(0, 15),
    ),
)
def test_any_names_and_any_size(names, width, height, view):
    frame = frame_of(board(names), view, width, height)
    assert len(frame.lines) == height
    assert all(cell_len(line.plain) <= width for line in frame.lines)

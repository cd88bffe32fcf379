"""The order of rows."""

import pytest

from turnwatch.top.columns import KEYS, in_order, worst_tools
from turnwatch.top.filtering import matches
from turnwatch.top.journal import Event
from turnwatch.top.rows import AgentRow, ToolRow

ROWS = [
    AgentRow("c", "idle", open_turns=0, usd_per_hour=5.0),
    AgentRow("a", "busy", open_turns=2, usd_per_hour=None, worst_tool="grep"),
    AgentRow("d", "STUCK", open_turns=1, usd_per_hour=1.0, stale_calls=3),
    AgentRow("b", "WARN", open_turns=1, usd_per_hour=7.0),
    AgentRow("e", "STUCK", open_turns=1, usd_per_hour=1.0, stale_calls=9),
    AgentRow("f", "gone"),
]


def names(key, **options):
    return "".join(row.agent for row in in_order(ROWS, key, **options))


def test_by_state_the_worst_come_first_and_turns_that_end_move_nobody():
    assert names("state") == "edbacf"


def test_numbers_begin_with_the_largest_and_what_is_not_known_comes_last():
    assert names("usd_per_hour") == "bcdeaf"
    assert names("usd_per_hour", is_reversed=True) == "decbaf"


def test_names_begin_with_the_smallest():
    assert names("agent") == "abcdef"
    assert names("agent", is_reversed=True) == "fedcba"


def test_equal_rows_are_by_name():
    assert names("open") == "abdecf"


@pytest.mark.parametrize("key", KEYS)
def test_every_column_can_be_sorted_by(key):
    assert sorted(names(key)) == sorted(names(key, is_reversed=True)) == list("abcdef")


def test_the_tool_that_repeats_itself_most_comes_first():
    tools = [
        ToolRow("a", "busy", calls_per_minute=100.0),
        ToolRow("a", "failing", errors_per_minute=3.0),
        ToolRow("a", "stale", stale_calls=3, identical_calls=3),
        ToolRow("a", "same", stale_calls=1, identical_calls=9),
    ]
    assert [row.tool for row in worst_tools(tools)] == ["stale", "same", "failing", "busy"]


def test_the_filter_looks_at_names_capitals_or_not():
    assert matches("", ROWS[0])
    assert matches("GRE", ROWS[1])
    assert matches("stuck", ROWS[2])
    assert not matches("grep", ROWS[2])
    assert matches("read", ToolRow("a", "read_file"))
    assert matches("cycle", Event(0.0, "warn", "a", "t", "cycle"))
    assert not matches("cycle", Event(0.0, "warn", "a", "t", "stale_repeat"))

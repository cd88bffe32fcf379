"""What the sources say, put together: agents over replicas, their state, their totals."""

import pytest

from turnwatch.settings import Settings
from turnwatch.top.board import board_of
from turnwatch.top.columns import COLUMNS
from turnwatch.top.journal import Journal
from turnwatch.top.marks import Marks
from turnwatch.top.polling import SourceState
from turnwatch.top.quantities import BY_METRIC, COUNTERS, LEVELS, Quantity
from turnwatch.top.reading import Reading

NOW = 1_796_000_000.0
DEFAULTS = Marks(Settings())
QUIET = Reading(levels={"agent_open_turns": {("a",): 0.0}})


def up(reading, address="http://a"):
    return SourceState(address, "metrics", reading, looks=1, at=NOW)


def down(reading=None, address="http://b"):
    return SourceState(address, "metrics", reading, error=f"{address}: refused", looks=2, at=NOW)


def shown(*states, marks=DEFAULTS, journal=None):
    journal = journal or Journal()
    journal.note(states)
    return board_of(states, journal, marks, NOW)


def agent(board, name="a"):
    (row,) = [row for row in board.agents if row.agent == name]
    return row


def levels(**values):
    """A reading of agent a: gauges by the end of their names, of tool t where they have one."""
    table = {}
    for metric in LEVELS:
        for end, value in values.items():
            if metric.metric.endswith(end):
                table[metric.metric] = {("a", "t")[: len(metric.by)]: float(value)}
    return Reading(levels=table)


def test_replicas_add_up_what_adds_up_and_keep_the_largest_of_the_rest():
    one = levels(open_turns=2, iterations_max=5, identical_calls_max=2, age_seconds_max=10)
    two = levels(open_turns=1, iterations_max=7, identical_calls_max=1, age_seconds_max=90)
    row = agent(shown(up(one), up(two, "http://b")))
    assert (row.open_turns, row.iterations, row.identical_calls, row.oldest_seconds) == (3, 7, 2, 90)


def test_one_duplicate_in_each_of_three_replicas_is_no_loop():
    replicas = [up(levels(open_turns=1, identical_calls_max=1, stale_calls_max=1), f"http://{n}") for n in range(3)]
    assert agent(shown(*replicas)).state == "busy"


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({"open_turns": 0}, "idle"),
        ({"open_turns": 1}, "busy"),
        ({"open_turns": 1, "identical_calls_max": 2, "stale_calls_max": 2}, "busy"),
        ({"open_turns": 1, "identical_calls_max": 3, "stale_calls_max": 1}, "WARN"),
        ({"open_turns": 1, "identical_calls_max": 3, "stale_calls_max": 3}, "STUCK"),
        ({"open_turns": 0, "stale_calls_max": 3}, "STUCK"),
        ({"open_turns": 1, "turn_iterations_max": 8}, "busy"),
        ({"open_turns": 1, "turn_iterations_max": 9}, "WARN"),
    ],
)
def test_the_state_follows_the_thresholds_of_the_alerts(values, state):
    assert agent(shown(up(levels(**values)))).state == state


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ({"tools": {"overrides": {"t": {"polling": True}}}}, "busy"),
        ({"tools": {"overrides": {"t": {"max_identical_calls": 5}}}}, "busy"),
        ({"agents": {"a": {"max_identical_calls": 5}}}, "busy"),
        ({"detect": {"max_identical_calls": 3}}, "busy"),
        ({"agents": {"b": {"max_identical_calls": 5}}}, "STUCK"),
    ],
)
def test_settings_of_the_agents_move_the_thresholds(settings, state):
    marks = Marks(Settings.model_validate(settings))
    reading = levels(open_turns=1, identical_calls_max=3, stale_calls_max=3)
    assert agent(shown(up(reading), marks=marks)).state == state


def test_an_agent_that_may_take_more_iterations_is_not_marked_for_them():
    marks = Marks(Settings.model_validate({"agents": {"a": {"iteration_threshold": 60}}}))
    assert agent(shown(up(levels(open_turns=1, turn_iterations_max=40)), marks=marks)).state == "busy"


def test_a_recent_verdict_marks_its_agent_whatever_the_gauges_say():
    recent = Reading(levels=QUIET.levels, begun={("a", "t", "cycle", "stuck"): (NOW - 60, 1)})
    older = Reading(levels=QUIET.levels, begun={("a", "t", "cycle", "stuck"): (NOW - 600, 1)})
    assert agent(shown(up(recent))).state == "STUCK"
    assert agent(shown(up(older))).state == "idle"


def test_rates_are_a_minute_and_an_hour():
    reading = Reading(
        levels=QUIET.levels,
        rates={
            "agent_tool_calls_total": {("a", "t", "ok"): 0.5, ("a", "t", "error"): 0.25, ("a", "u", "cached"): 0.25},
            "agent_repeat_results_total": {("a", "t"): 0.5},
            "agent_tokens_total": {("a",): 100.0},
            "agent_spend_usd_total": {("a",): 0.01},
        },
        window_seconds=60,
    )
    board = shown(up(reading), up(reading, "http://b"))
    row = agent(board)
    assert (row.calls_per_minute, row.errors_per_minute, row.repeats_per_minute) == (120, 30, 60)
    assert (row.tokens_per_minute, row.usd_per_hour) == (12_000, 72)
    assert board.usd_per_hour == 72
    assert {(tool.tool, tool.calls_per_minute, tool.errors_per_minute) for tool in board.tools} == {
        ("t", 90, 30),
        ("u", 30, 0),
    }


def test_before_the_second_look_rates_are_not_known():
    board = shown(up(QUIET))
    assert board.usd_per_hour is None
    assert agent(board).usd_per_hour is None
    assert agent(board).calls_per_minute is None


def test_what_counters_stand_at_adds_up_over_sources_that_are_up_or_down():
    verdicts = {("a", "t", "stale_repeat", "stuck"): 3.0, ("a", "u", "cycle", "warn"): 1.0}
    reading = Reading(levels=QUIET.levels, totals={"agent_loops_detected_total": verdicts})
    row = agent(shown(up(reading), down(reading)))
    assert (row.stuck_verdicts, row.stuck_verdicts_total, row.warn_verdicts_total) == (0, 6, 2)


def test_numbers_past_their_threshold_are_marked_in_the_row_of_the_agent_too():
    cells = {column.key: column.text for column in COLUMNS}
    past = agent(shown(up(levels(open_turns=1, identical_calls_max=5, stale_calls_max=5))))
    assert (cells["same"](past), cells["stale"](past)) == ("5!", "5!")
    fine = agent(shown(up(levels(open_turns=1, identical_calls_max=2, stale_calls_max=1))))
    assert (cells["same"](fine), cells["stale"](fine)) == ("2", "1")


def test_totals_of_verdicts_stops_and_spend_are_since_the_start():
    tallies = {
        "agent_spend_usd_total": {("a",): 0.5},
        "agent_loops_detected_total": {
            ("a", "t", "stale_repeat", "stuck"): 2.0,
            ("a", "u", "cycle", "warn"): 1.0,
            ("a", "u", "cycle", "observe"): 7.0,
        },
        "agent_guard_stops_total": {("a", "max_usd"): 1.0},
        "agent_unpriced_model_calls_total": {("mystery-model",): 4.0},
    }
    board = shown(up(Reading(levels=QUIET.levels, tallies=tallies)))
    row = agent(board)
    assert (row.spent_usd, row.stuck_verdicts, row.warn_verdicts, row.guard_stops) == (0.5, 2, 1, 1)
    assert (board.spent_usd, board.unpriced_calls) == (0.5, 4)
    assert [row.agent for row in board.agents] == ["a"]


def test_what_a_source_spent_stays_spent_when_it_goes_down_and_its_agents_are_gone():
    reading = Reading(
        levels={"agent_open_turns": {("a",): 3.0}},
        rates={"agent_spend_usd_total": {("a",): 1.0}},
        tallies={"agent_spend_usd_total": {("a",): 0.5}},
    )
    board = shown(up(Reading(), "http://c"), down(reading))
    row = agent(board)
    assert (row.state, row.open_turns, row.usd_per_hour, row.spent_usd) == ("gone", None, None, 0.5)
    assert (board.up, board.down, board.open_turns) == (1, 1, 0)


def test_an_agent_whose_other_source_is_up_is_not_gone():
    board = shown(up(QUIET), down(levels(open_turns=3)))
    assert agent(board).state == "idle"
    assert agent(board).open_turns == 0


def test_exporters_behind_a_prometheus_are_counted():
    board = shown(up(Reading(levels=QUIET.levels, targets_up=5, targets_down=2)), down())
    assert (board.up, board.down) == (5, 3)


def test_what_is_read_is_in_the_catalogue():
    assert len(BY_METRIC) == len(LEVELS) + len(COUNTERS)
    with pytest.raises(KeyError):
        Quantity("agent_no_such_thing", ("agent",))
    with pytest.raises(ValueError, match="no label tool"):
        Quantity("agent_open_turns", ("tool",))

"""What is told, when, and only once."""

import pytest

from turnwatch.top.board import Board
from turnwatch.top.journal import KEPT, Event, Journal
from turnwatch.top.panes import panes_of
from turnwatch.top.polling import SourceState
from turnwatch.top.reading import Reading
from turnwatch.top.view import View

NOW = 1_796_000_000.0
LOOP = ("a", "t", "stale_repeat", "stuck")


class Told:
    """A journal of one source, read again and again."""

    def __init__(self):
        self.journal = Journal()
        self.looks = 0
        self.reading = None

    def look(self, reading=None, error=None):
        self.looks += 1
        self.reading = reading or self.reading
        before = len(self.journal.events)
        at = NOW + self.looks
        self.journal.note([SourceState("http://a", "metrics", self.reading, error, self.looks, at)])
        return [(event.sort, event.agent, event.text, event.count) for event in list(self.journal.events)[before:]]


def verdicts(count, **more):
    return Reading(tallies={"agent_loops_detected_total": {LOOP: float(count)}}, **more)


def test_a_verdict_is_told_when_its_counter_rises():
    told = Told()
    assert told.look(Reading()) == []
    assert told.look(verdicts(1)) == [("stuck", "a", "stale_repeat", 1)]
    assert told.look(verdicts(1)) == []
    assert told.look(verdicts(3)) == [("stuck", "a", "stale_repeat", 2)]


def test_the_same_look_is_told_once():
    told = Told()
    told.look(Reading())
    told.look(verdicts(1))
    states = [SourceState("http://a", "metrics", verdicts(1), None, told.looks, NOW)]
    told.journal.note(states)
    assert len(told.journal.events) == 1


@pytest.mark.parametrize(("age_seconds", "expected"), [(60, [("stuck", "a", "stale_repeat", 4)]), (7_200, [])])
def test_a_verdict_of_before_is_told_with_its_own_time_if_it_is_not_old(age_seconds, expected):
    told = Told()
    assert told.look(Reading(begun={LOOP: (NOW - age_seconds, 4.0)})) == expected
    assert [(event.at, event.is_since) for event in told.journal.events] == [(NOW - age_seconds, True)] * len(expected)


def test_stops_and_passed_thresholds_are_told():
    told = Told()
    told.look(Reading())
    tallies = {
        "agent_guard_stops_total": {("a", "max_usd"): 1.0},
        "agent_iteration_limit_exceeded_total": {("b",): 1.0},
        "agent_spend_usd_total": {("a",): 9.0},
    }
    assert told.look(Reading(tallies=tallies)) == [
        ("stop", "a", "stopped by a guard: max_usd", 1),
        ("limit", "b", "past the iteration threshold", 1),
    ]


def test_a_source_goes_down_once_and_comes_back_once():
    told = Told()
    told.look(Reading())
    assert told.look(error="http://a: Connection refused") == [("source", "", "down: http://a: Connection refused", 1)]
    assert told.look(error="http://a: Connection refused") == []
    assert told.look(verdicts(2)) == [("source", "", "back: http://a", 1), ("stuck", "a", "stale_repeat", 2)]


def test_a_source_that_was_down_from_the_beginning_comes_up():
    told = Told()
    assert told.look(error="http://a: refused") == [("source", "", "down: http://a: refused", 1)]
    assert told.look(Reading()) == [("source", "", "up: http://a", 1)]


def test_a_restart_and_exporters_that_go_down_are_told():
    told = Told()
    told.look(Reading())
    assert told.look(Reading(restarts=1)) == [("source", "", "restarted: http://a", 1)]
    assert told.look(Reading(restarts=1, targets_down=2)) == [("source", "", "2 exporters down: http://a", 1)]


def test_the_latest_events_are_kept_and_no_more():
    told = Told()
    told.look(Reading())
    for count in range(1, 2 * KEPT):
        told.look(verdicts(count))
    assert len(told.journal.events) == KEPT
    assert told.journal.last("stuck") == {"a": NOW + told.looks}


def test_more_than_one_verdict_of_before_is_shown_as_since_the_first():
    event = Event(NOW, "stuck", "a", "t", "stale_repeat", 11, is_since=True)
    (line,) = panes_of(Board(NOW, events=(event,)), View(), 80)["events"].rows(0, 1)
    assert line.plain.rstrip().endswith("stale_repeat x11 since then")

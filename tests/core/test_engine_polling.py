"""What is meant to be asked again is no loop, for as long as it is asked with patience."""

import pytest
from tests.core.judged import PAGE, call, stuck_at, verdicts

from turnwatch.core.engine import Engine
from turnwatch.core.events import ModelCall
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch


def polls(waits, result="running", **more):
    at, calls = 0.0, []
    for wait in waits:
        at += wait
        calls.append(call("get_job", {"id": 1}, result, started=at, ended=at, **more))
    return calls


def test_a_busy_poll_has_a_cap():
    assert verdicts(polls([1.0] * 30, polling=True)) == [("stale_repeat", "warn", 10), ("stale_repeat", "stuck", 20)]


def test_a_poll_that_backs_off_is_fine():
    assert verdicts(polls([2.0 ** min(n, 5) for n in range(30)], polling=True)) == []


def test_even_patient_polls_end():
    assert verdicts(polls([60.0] * 130, polling=True)) == [("stale_repeat", "warn", 60), ("stale_repeat", "stuck", 120)]


@pytest.mark.parametrize(("tool", "polling"), [("get_job", True), ("wait_for_job", None)])
def test_a_poll_is_no_stale_call_until_it_is_stuck(tool, polling):
    engine, stale = Engine(), []
    for second in map(float, range(20)):
        engine.observe(call(tool, {"id": 1}, "running", polling=polling, started=second, ended=second))
        stale.append(engine.last.stale_calls)
    assert stale == [0] + [1] * 18 + [20]


def test_a_pace_is_as_good_as_a_hint():
    assert stuck_at(polls([2.0**n for n in range(8)])) is None
    assert stuck_at(polls([2.0] * 8)) == 4


def test_an_answer_that_it_is_not_done_yet_is_as_good_as_a_hint():
    running = "status: running"
    assert verdicts(polls([2.0] * 30, running)) == [("stale_repeat", "warn", 10), ("stale_repeat", "stuck", 20)]
    assert stuck_at(polls([2.0] * 30, running, polling=False)) == 4
    assert stuck_at([call("start_job", {"id": 1}, "status: queued")] * 6) == 4
    percents = [call("get_job", {"id": 1}, f"Status: running ({percent}%)") for percent in range(1, 99, 4)]
    assert verdicts(percents) == []


def test_looking_at_what_a_process_says_is_a_poll():
    looks = [call("write_stdin", {"session_id": 7, "chars": ""}, "Process running with session ID 7")] * 9
    assert verdicts(looks) == []


def test_moving_on_is_no_standstill_until_a_page_shows_that_it_is():
    assert verdicts([call("scroll_down", {}, "Scrolled down")] * 9) == []
    assert stuck_at([call("scroll_down", {}, "Scrolled down")] * 20) == 20
    assert stuck_at([call("scroll_down", {}, " ".join(PAGE))] * 9) == 4


def test_other_work_is_not_patience():
    calls, at = [], 0.0
    for number in range(5):
        for step in range(2**number):
            at += 1.0
            calls.append(call("tick", {"part": f"{number} {step}"}, "noted", started=at, ended=at))
        at += 1.0
        calls.append(call("get_job", {"id": 1}, "running", started=at, ended=at))
    assert stuck_at(calls) is not None


def test_sleeping_between_polls_is_patience():
    calls, at = [], 0.0
    for _ in range(9):
        calls.append(call("get_job", {"id": 1}, "running", started=at, ended=at))
        calls.append(call("bash", {"command": "sleep 45"}, "", started=at, ended=at + 45.0))
        at += 45.0
    assert verdicts(calls) == []


def test_a_poll_that_sleeps_in_its_own_command_is_one():
    calls = [call("bash", {"command": "sleep 5; cat log"}, "building") for _ in range(9)]
    assert verdicts(calls) == []


def test_a_slow_model_is_not_patience():
    turn = TurnState("agent", watch=Watch(clock=lambda: 0.0))
    for number in range(4):
        at = 41.0 * number
        turn.begin_model()
        turn.end_model(ModelCall("local", started=at, ended=at + 40.0))
        look = call("list_files", result="a.py", started=at + 40.0, ended=at + 41.0)
        turn.begin_call(look)
        turn.end_call(look)
    assert turn.verdict is not None
    assert turn.verdict.severity == "stuck"

"""Errors: when they are debugging, and when they go round in circles."""

import pytest
from tests.core.judged import call, stuck_at, verdicts

from turnwatch.core.engine import Engine
from turnwatch.core.events import ToolCall


def test_the_same_call_failing_three_times_is_stuck_whatever_the_text():
    texts = ["cannot open it", "no such thing at all", "a different problem"]
    assert verdicts([call(error=text) for text in texts]) == [("error_stall", "stuck", 3)]


def test_a_failing_call_that_waits_longer_each_time_has_more_attempts():
    def attempts(*times):
        return [call("fetch", {"q": 1}, error="503 try later", started=at, ended=at) for at in times]

    backing_off = attempts(0.0, 1.0, 3.0, 7.0, 15.0, 31.0)
    assert verdicts(backing_off) == [("error_stall", "warn", 5), ("error_stall", "stuck", 6)]
    assert stuck_at(attempts(0.0, 2.0, 4.0)) == 3


def test_other_errors_of_the_same_call_after_other_work_are_debugging():
    calls = []
    for text in ("module a missing", "name b undefined", "value c wrong", "index d out of range"):
        calls += [call("run", {"cmd": "python x.py"}, error=text), call("read", {"p": text}, f"about {text}")]
    assert verdicts(calls) == []


def test_the_same_error_after_six_different_fixes_is_stuck():
    calls = []
    for fix in "abcdefgh":
        calls += [call("edit", {"patch": fix}, f"applied {fix}"), call("run_tests", error="assertion failed in f")]
    assert verdicts(calls) == [("error_stall", "warn", 10), ("error_stall", "stuck", 12)]


def test_passing_tests_may_pass_after_every_change():
    calls = []
    for change in "abcdefghijkl":
        calls += [call("edit", {"patch": change}, f"applied {change}"), call("run_tests", result="all passed")]
    assert verdicts(calls) == []


def test_six_errors_alike_are_stuck_whatever_is_called():
    calls = [call("query", {"sql": f"select {w}"}, error="table singers does not exist") for w in "abcdefg"]
    assert verdicts(calls) == [("error_stall", "warn", 5), ("error_stall", "stuck", 6)]


def test_six_errors_alike_are_stuck_whatever_failed_before_them():
    other = [call("query", {"sql": f"select {w}"}, error="no database is selected") for w in ("one", "two", "three")]
    alike = [call("query", {"sql": f"select {w}"}, error="table singers does not exist") for w in "abcdef"]
    for before in range(4):
        assert verdicts(other[:before] + alike) == [
            ("error_stall", "warn", before + 5),
            ("error_stall", "stuck", before + 6),
        ]
        engine = Engine()
        verdicts(other[:before] + alike, engine)
        assert engine.verdict.first_call == before + 1


def test_an_error_of_another_kind_in_between_puts_the_stall_off():
    errors = ["table singers does not exist"] * 3 + ["no database is selected"] + ["table singers does not exist"] * 4
    calls = [call("query", {"sql": f"select {n}"}, error=error) for n, error in enumerate(errors)]
    assert stuck_at(calls) == 8


def test_different_errors_are_no_stall():
    calls = [call("query", {"sql": w}, error=f"no column {w}") for w in ("name", "title", "age", "city", "zip", "tax")]
    assert verdicts(calls) == []


def test_a_failure_in_the_text_counts_as_one():
    assert verdicts([call(result="Error: no such order")] * 3) == [("error_stall", "stuck", 3)]


def test_an_error_without_text_is_still_an_error():
    failing = ToolCall("get", {}, outcome="error", error_type="TimeoutError")
    assert verdicts([failing] * 3) == [("error_stall", "stuck", 3)]


def test_asking_again_after_a_refusal_is_stuck_too():
    denied = ToolCall("get", {}, outcome="denied")
    assert verdicts([denied] * 3) == [("error_stall", "stuck", 3)]


def test_tools_that_do_not_exist():
    calls = [
        call(name, {"x": n}, error=f"unknown tool '{name}'") for n, name in enumerate(("ls", "cat", "dir", "type"))
    ]
    assert verdicts(calls) == [("unknown_tool", "warn", 3), ("unknown_tool", "stuck", 4)]


@pytest.mark.parametrize(
    "told", ["<returncode>1</returncode>\n{}", "{}\nCommand exited with code 1", "{}\nExit Code: 2"]
)
def test_a_command_that_ends_the_same_way_whatever_is_changed_is_futile(told):
    def fixes(text):
        for number in range(8):
            yield call("edit_file", {"patch": f"try {'abcdefgh'[number]}"}, "edited")
            yield call("bash", {"command": "npm test"}, text)

    assert stuck_at(fixes(told.format("NaN is not 3"))) is not None
    assert stuck_at(fixes("all is well, exit code 0")) is None

import json

import pytest

from turnwatch.core.events import MISSING, ModelCall, ToolCall
from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.trajectories import looks_like_trajectory, read_trajectories, turns_of


def record(*calls, **more):
    return {"trajectory_id": "run/1", "framework": "loop", "model": "m-1", "calls": list(calls), **more}


def tool_calls(turn):
    return [event for event in turn.events if isinstance(event, ToolCall)]


def model_calls(turn):
    return [event for event in turn.events if isinstance(event, ModelCall)]


def test_a_call_with_digests():
    (turn,) = turns_of(
        record(
            {
                "i": 0,
                "tool": "bash",
                "args": {"command": "ls"},
                "result_hash": "aa",
                "result_nhash": "bb",
                "result_sim": "0f",
                "result_head": "[]",
                "result_len": 2,
                "error": False,
                "ts": 100,
                "tokens_in": 10,
                "tokens_out": 3,
                "cost_usd": 0.5,
            },
            exit="Submitted",
            outcome="success",
        )
    )
    model, call = turn.events
    assert (turn.conversation_id, turn.turn_id, turn.agent, turn.stop_reason) == (
        "run/1",
        "run/1",
        "loop",
        "final_answer",
    )
    assert (call.tool, call.args, call.outcome, call.started) == ("bash", {"command": "ls"}, "ok", 100.0)
    assert (call.result.exact, call.result.normal, call.result.simhash, call.result.empty) == ("aa", "bb", 15, True)
    assert (model.model, model.usage.input, model.usage.output, model.spend_usd) == ("m-1", 10, 3, 0.5)


def test_results_and_errors_as_text():
    (turn,) = turns_of(record({"tool": "a", "args": {}, "result": "fine"}, {"tool": "a", "args": {}, "error": "no a"}))
    fine, failed = tool_calls(turn)
    assert (fine.outcome, fine.result.head) == ("ok", "fine")
    assert (failed.outcome, failed.result.head) == ("error", "no a")


def test_a_result_that_is_not_there_is_unknown():
    (turn,) = turns_of(record({"tool": "a", "args": {}, "result_hash": None, "error": None}))
    assert tool_calls(turn)[0].result is None


def test_arguments_that_were_not_captured_are_missing_and_not_empty():
    (turn,) = turns_of(
        record({"tool": "a", "args": {}, "args_captured": False}, {"tool": "a"}, {"tool": "a", "args": {}})
    )
    assert [call.args for call in tool_calls(turn)] == [MISSING, MISSING, {}]


def test_calls_of_one_reply_share_a_model_call_and_a_round():
    (turn,) = turns_of(
        record(
            {"tool": "a", "args": {}, "batch": 1, "cost_usd": 0.4, "tokens": {"in": 5, "out": 1}},
            {"tool": "b", "args": {}, "batch": 1, "cost_usd": 0.4, "tokens": {"in": 5, "out": 1}},
            {"tool": "a", "args": {}},
        )
    )
    first, second = model_calls(turn)
    assert (first.spend_usd, first.usage.total, second.usage) == (0.8, 12, None)
    assert [call.round for call in tool_calls(turn)] == [1, 1, None]


def test_user_turns_are_turns():
    turns = turns_of(
        record(
            {"tool": "a", "args": {}, "turn": 3},
            {"tool": "b", "args": {}, "turn": 3},
            {"tool": "c", "args": {}, "turn": 5},
            exit="max_turns",
        )
    )
    assert [(turn.turn_id, [call.tool for call in tool_calls(turn)]) for turn in turns] == [
        ("run/1/3", ["a", "b"]),
        ("run/1/5", ["c"]),
    ]
    assert [turn.stop_reason for turn in turns] == ["unknown", "max_iterations"]


def test_a_single_user_turn_needs_no_number():
    (turn,) = turns_of(record({"tool": "a", "args": {}, "turn": 0}))
    assert turn.turn_id == "run/1"


def test_spans_as_calls_are_model_calls_and_agent_spans_spend_nothing_themselves():
    (turn,) = turns_of(
        record(
            {"tool": "span:chat", "args": {}, "cost_usd": 0.05},
            {"tool": "span:chat", "args": {}, "cost_usd": 0.05},
            {"tool": "span:invoke_agent", "args": {}, "cost_usd": 0.1},
        )
    )
    assert [call.spend_usd for call in turn.events] == [0.05, 0.05]


def test_hints_of_the_call_and_of_the_tool():
    (turn,) = turns_of(
        record(
            {"tool": "poll", "args": {}, "mutates": False},
            {"tool": "poll", "args": {}, "readOnlyHint": True, "polling": False},
            tools={"poll": {"polling": True}},
        )
    )
    first, second = tool_calls(turn)
    assert (first.polling, first.mutates, first.read_only) == (True, False, None)
    assert (second.polling, second.mutates, second.read_only) == (False, None, True)


def test_times_as_numbers_and_as_text():
    (turn,) = turns_of(
        record(
            {"tool": "a", "args": {}, "ts": "2025-04-30T16:32:57.5"}, {"tool": "a", "args": {}, "t": 4}, {"tool": "a"}
        )
    )
    assert [call.started for call in tool_calls(turn)] == [1746030777.5, 4.0, None]


def test_a_trajectory_without_calls_is_a_turn_without_events():
    (turn,) = turns_of(record())
    assert (turn.events, turn.conversation_id) == ([], "run/1")


def test_lines_that_cannot_be_read_are_reported_and_the_rest_is_read():
    lines = [
        json.dumps(record({"tool": "a", "args": {}})),
        "",
        "{broken",
        "[1, 2]",
        json.dumps({"trajectory_id": "x", "calls": [7]}),
        json.dumps({"trajectory_id": "x", "calls": [{"args": {}}]}),
        json.dumps({"id": "case", "calls": [{"tool": "b", "args": {}}]}).encode(),
    ]
    read = list(read_trajectories(lines))
    broken = [one.line for one in read if isinstance(one, BrokenLine)]
    assert broken == [3, 4, 5, 6]
    assert [(turn.conversation_id, turn.line) for turn in read if not isinstance(turn, BrokenLine)] == [
        ("run/1", 1),
        ("case", 7),
    ]


CALL = {"tool": "a", "args": {}, "result_hash": "aa", "ts": 5, "tokens_in": 3, "tokens_out": 4, "cost_usd": 0.5}


@pytest.mark.parametrize(
    ("unreadable", "said"),
    [
        ({"ts": "yesterday"}, "call 2 has a time that is neither seconds nor ISO 8601; read without it"),
        ({"ts": [2026]}, "call 2 has a time that is neither seconds nor ISO 8601; read without it"),
        ({"ts": 10**400}, "call 2 has a time that is neither seconds nor ISO 8601; read without it"),
        ({"tokens_in": "many"}, "call 2 has tokens that are no number of 0 or more; read without them"),
        ({"tokens_out": -1}, "call 2 has tokens that are no number of 0 or more; read without them"),
        ({"cost_usd": "a lot"}, "call 2 has a cost that is no number of dollars; read without it"),
        ({"result_sim": "no hex"}, "call 2 has a result_sim that is no hexadecimal number; read without it"),
    ],
)
def test_what_cannot_be_read_of_a_call_is_lost_and_nothing_else(unreadable, said):
    lines = [json.dumps(record(CALL, {**CALL, **unreadable}, CALL))]
    broken, turn = read_trajectories(lines)
    assert (broken.line, broken.reason) == (1, said)
    (whole,) = read_trajectories([json.dumps(record(CALL, {**CALL, **dict.fromkeys(unreadable)}, CALL))])
    assert [(call.tool, call.args, call.started) for call in tool_calls(turn)] == [
        (call.tool, call.args, call.started) for call in tool_calls(whole)
    ]
    assert [call.spend_usd for call in model_calls(turn)] == [call.spend_usd for call in model_calls(whole)]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1.0], ids=str)
def test_a_number_that_stands_for_nobody_knows_is_unknown(odd):
    (turn,) = read_trajectories([json.dumps(record({**CALL, "cost_usd": odd}))])
    assert [call.spend_usd for call in model_calls(turn)] == [None]


@pytest.mark.parametrize("odd", [float("nan"), float("inf")], ids=str)
def test_a_time_that_is_none_is_unknown(odd):
    (turn,) = read_trajectories([json.dumps(record({**CALL, "ts": odd}))])
    assert [call.started for call in tool_calls(turn)] == [None]


@pytest.mark.parametrize("call", [7, None, {}, {"args": {}}, []])
def test_a_call_that_is_none_is_passed_over_and_the_others_are_kept(call):
    broken, turn = read_trajectories([json.dumps(record(CALL, call, CALL))])
    assert broken.reason == "call 2 has no tool, and is passed over"
    assert [call.tool for call in tool_calls(turn)] == ["a", "a"]


@pytest.mark.parametrize("other", [None, [], {"calls": []}, {"id": "x"}, {"trajectory_id": "x", "calls": {}}])
def test_other_json_is_no_trajectory(other):
    assert not looks_like_trajectory(other)

"""Rollouts of the Codex CLI: items, token counts, aborted turns and threads of sub-agents."""

from __future__ import annotations

import json
from typing import Any

from tests.sources.transcripts.judgement import judged

Record = dict[str, Any]


def line(kind: str, **payload: Any) -> Record:
    return {"timestamp": "2026-01-05T10:00:00.000Z", "type": kind, "payload": payload}


def meta(**more: Any) -> Record:
    return line("session_meta", id="thread-1", cwd="/src", cli_version="0.65.0", **more)


def model() -> Record:
    return line("turn_context", model="gpt-5-codex", cwd="/src")


def user(text: str) -> Record:
    return line("response_item", type="message", role="user", content=[{"type": "input_text", "text": text}])


def said(text: str) -> Record:
    return line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def call(call_id: str, args: Any, tool: str = "shell") -> Record:
    return line("response_item", type="function_call", name=tool, arguments=json.dumps(args), call_id=call_id)


def output(call_id: str, text: str, code: int = 0) -> Record:
    wrapped = json.dumps({"output": text, "metadata": {"exit_code": code, "duration_seconds": 0.1}})
    return line("response_item", type="function_call_output", call_id=call_id, output=wrapped)


def output_text(call_id: str, text: str) -> Record:
    return line("response_item", type="function_call_output", call_id=call_id, output=text)


def tokens(replies: int) -> Record:
    last = {
        "input_tokens": 100,
        "cached_input_tokens": 60,
        "output_tokens": 20,
        "reasoning_output_tokens": 5,
        "total_tokens": 120,
    }
    total = {name: value * replies for name, value in last.items()}
    return line("event_msg", type="token_count", info={"total_token_usage": total, "last_token_usage": last})


def test_a_session_is_cut_into_turns_with_models_and_tokens(scanned):
    turns, unread = scanned(
        meta(),
        user("<environment_context>cwd</environment_context>"),
        user("Run the tests"),
        line("event_msg", type="user_message", message="Run the tests"),
        model(),
        call("c1", {"command": ["ls"]}),
        call("c2", {"command": ["pwd"]}),
        tokens(1),
        tokens(1),
        output("c1", "a"),
        output("c2", "/src"),
        said("Done."),
        tokens(2),
        user("Thanks"),
        said("You are welcome."),
        tokens(3),
    )
    assert unread == []
    assert [(turn.turn_id, turn.iterations, turn.tool_calls, turn.stop_reason) for turn in turns] == [
        ("thread-1/1", 2, 2, "final_answer"),
        ("thread-1/2", 1, 0, "final_answer"),
    ]
    usage = turns[0].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.reasoning) == (200, 40, 120, 10)
    assert turns[0].spend_usd
    assert turns[0].unpriced_models == set()


def test_a_stuck_session_is_judged_as_by_hand(scanned, by_hand):
    calls = [("shell", {"command": ["grep", "x", "a.txt"]}, "no match")] * 6
    lines = [meta(), user("Find it"), model()]
    for n, (tool, args, answer) in enumerate(calls):
        lines += [call(f"c{n}", args, tool), tokens(n + 1), output(f"c{n}", answer)]
    (turn,), _ = scanned(*lines)
    assert turn.verdict is not None
    assert judged(turn) == judged(by_hand(calls))


def test_commands_that_fail_are_errors_and_other_kinds_of_calls_count(scanned):
    (turn,), _ = scanned(
        meta(),
        user("Go"),
        *(each for n in range(6) for each in (call(f"c{n}", {"n": n}), output(f"c{n}", "make: no rule", code=2))),
        line("response_item", type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="p"),
        line("response_item", type="custom_tool_call_output", call_id="p", output="Exit code: 0\nOutput:\nok"),
        line("response_item", type="web_search_call", status="completed", action={"type": "search", "query": "x"}),
        line("event_msg", type="turn_aborted", reason="interrupted"),
    )
    assert (turn.tool_calls, turn.stop_reason) == (8, "user_cancelled")
    assert "error_stall" in {verdict.kind for verdict in turn.verdicts}


def test_a_thread_of_a_sub_agent_belongs_to_the_conversation_that_started_it(scanned):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "thread-0", "depth": 1}}}
    (turn,), _ = scanned(meta(source=source), user("Look"), said("Nothing."))
    assert (turn.conversation_id, turn.turn_id, turn.agent) == ("thread-0", "thread-1/1", "subagent")


def about(code: int, chunk: str) -> str:
    return f"Chunk ID: {chunk}\nWall time: 0.0{chunk[:1]} seconds\nProcess exited with code {code}\nOutput:\n"


def test_what_codex_says_about_a_command_is_not_what_the_command_printed(scanned, by_hand):
    calls = [("exec_command", {"cmd": "cat a.txt"}, "one\n")] * 5
    lines = [meta(), user("Read it")]
    for n, (tool, args, answer) in enumerate(calls):
        lines += [call(f"c{n}", args, tool), tokens(n + 1), output_text(f"c{n}", about(0, f"{n}fa{n}c") + answer)]
    (turn,), _ = scanned(*lines)
    assert judged(turn) == judged(by_hand(calls))
    failing = [output_text(f"c{n}", about(2, f"{n}b{n}") + "no such file") for n in range(3)]
    (turn,), _ = scanned(meta(), user("Go"), *(x for n in range(3) for x in (call(f"c{n}", {"n": 1}), failing[n])))
    assert turn.verdict is not None
    assert (turn.verdict.kind, turn.verdict.detected_call) == ("error_stall", 3)


def test_a_request_that_fails_is_a_failed_model_call(scanned):
    failed = line("event_msg", type="task_complete", last_agent_message=None, error={"message": "overloaded"})
    (turn,), _ = scanned(meta(), model(), user("Go"), call("c", {}), output("c", "ok"), tokens(1), failed)
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (2, 1, "error")


def test_a_message_of_the_user_that_looks_like_one_of_codex_begins_a_turn(scanned):
    said_so = line("event_msg", type="item_completed", item={"type": "UserMessage"})
    turns, _ = scanned(meta(), user("Go"), said("Yes."), user("<b>Go on</b>"), said_so, said("Done."))
    assert [turn.iterations for turn in turns] == [1, 1]


def test_a_broken_line_is_named_and_the_rest_is_read(scanned):
    (turn,), unread = scanned(meta(), user("Look"), '{"timestamp"', call("c", {}), output("c", ""))
    assert turn.tool_calls == 1
    assert unread == ["3: cut off at column 12: the JSON that begins here is not closed"]

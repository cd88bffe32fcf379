"""Claude Code transcripts: turns, sub-agents, compaction, and usage written on every line of a reply."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.sources.transcripts.judgement import judged

_numbers = itertools.count()


def event(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    number = next(_numbers)
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": None,
        "sessionId": "s1",
        "isSidechain": False,
        "timestamp": f"2026-01-05T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
        "message": message,
        **more,
    }


def said(block: Any, reply: str, output: int = 10, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 4,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 6,
        "output_tokens": output,
    }
    message = {"id": reply, "type": "message", "model": "claude-sonnet-4-5", "usage": usage}
    return event("assistant", [block], message=message, **more)


def use(call: str, args: Any, tool: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": tool, "input": args}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(call: str, content: Any = "", failed: bool = False, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": failed}
    return event("user", [block], **more)


def looping(times: int, **more: Any) -> list[dict[str, Any]]:
    return [
        line
        for n in range(times)
        for line in (
            said(use(f"t{n}", {"command": "ls missing"}), f"m{n}", **more),
            result(f"t{n}", "ls: missing", failed=True, **more),
        )
    ]


def test_a_turn_runs_from_one_message_of_the_user_to_the_next(scanned):
    turns, unread = scanned(
        {"type": "summary", "summary": "Tests", "leafUuid": "x"},
        event("user", "Run the tests"),
        said(use("t1", {"command": "make test"}), "m1"),
        result("t1", [text("ok")]),
        said(text("They pass."), "m2"),
        event("user", [text("And lint?")]),
        said(text("Yes."), "m3"),
    )
    assert unread == []
    assert [(turn.turn_id, turn.iterations, turn.tool_calls) for turn in turns] == [("s1/1", 2, 1), ("s1/2", 1, 0)]
    assert {(turn.conversation_id, turn.agent, turn.stop_reason) for turn in turns} == {
        ("s1", "claude-code", "final_answer")
    }
    assert turns[0].last_active - turns[0].started > 0


def test_usage_that_stands_on_every_line_of_a_reply_counts_once(scanned):
    (turn,), _ = scanned(
        event("user", "Look"),
        said({"type": "thinking", "thinking": "..."}, "m1", output=1),
        said(text("Looking."), "m1", output=1),
        said(use("t1", {"command": "ls"}), "m1", output=30),
        result("t1", "a"),
        said(use("t2", {"command": "pwd"}), "m1", output=30),
        result("t2", "/"),
    )
    assert (turn.iterations, turn.tool_calls) == (1, 2)
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output, turn.usage.cache_read, turn.usage.cache_write) == (100, 30, 90, 6)
    assert turn.spend_usd is not None
    assert turn.unpriced_models == set()
    assert turn.stop_reason == "unknown"


def test_a_stuck_session_is_judged_as_by_hand(scanned, by_hand):
    calls = [("Bash", {"command": "ls missing"}, "nothing there")] * 6
    lines = [event("user", "Find it")]
    for n, (tool, args, answer) in enumerate(calls):
        lines += [said(use(f"t{n}", args, tool), f"m{n}"), result(f"t{n}", answer)]
    (turn,), _ = scanned(*lines)
    assert turn.verdict is not None
    assert turn.verdict.severity == "stuck"
    assert judged(turn) == judged(by_hand(calls))


@pytest.mark.parametrize("sign", [{"isCompactSummary": True}, {"isMeta": True}])
def test_compaction_and_notes_do_not_end_a_turn(scanned, sign):
    (turn,), _ = scanned(
        event("user", "Find it"),
        *looping(2),
        {"type": "system", "subtype": "compact_boundary", "uuid": "c", "sessionId": "s1", "content": "Compacted"},
        event("user", "This session is being continued from a previous conversation", **sign),
        said(use("t9", {"command": "ls missing"}), "m9"),
        result("t9", "ls: missing", failed=True),
    )
    assert (turn.tool_calls, turn.repeats) == (3, 2)


def test_an_interrupted_turn_was_cancelled_by_the_user(scanned):
    (first, second), _ = scanned(
        event("user", "Find it"),
        *looping(1),
        event("user", [text("[Request interrupted by user for tool use]")]),
        event("user", "Stop, and do this instead"),
        said(text("Done."), "m8"),
    )
    assert (first.stop_reason, second.stop_reason) == ("user_cancelled", "final_answer")


def test_an_error_of_the_api_is_a_failed_model_call_and_other_notices_are_none(scanned):
    (turn,), _ = scanned(
        event("user", "Find it"),
        event("assistant", [text("No response requested.")], message={"model": "<synthetic>", "id": "n1"}),
        event("assistant", [text("API Error: 529")], message={"model": "<synthetic>"}, isApiErrorMessage=True),
    )
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (1, 0, "error")


def test_sub_agents_among_the_lines_are_turns_of_their_own_with_a_parent(scanned):
    def side(one: dict[str, Any], after: dict[str, Any] | None) -> dict[str, Any]:
        return {**one, "isSidechain": True, "parentUuid": after and after["uuid"]}

    asked = side(event("user", "Search for it"), None)
    other = side(event("user", "Something else"), None)
    mine, last = [asked], asked
    for line in looping(2):
        last = side(line, last)
        mine.append(last)
    reply = side(said(text("Nothing."), "o1"), other)
    task = {"description": "search", "prompt": "Search for it", "subagent_type": "Explore"}
    (main, explorer, unnamed), _ = scanned(
        event("user", "Find it"),
        said(use("k1", task, "Task"), "m100"),
        *mine[:3],
        other,
        *mine[3:],
        reply,
        result("k1", "Nothing."),
        said(text("It is not there."), "m101"),
    )
    assert (main.agent, main.iterations, main.tool_calls, main.repeats) == ("claude-code", 2, 1, 0)
    assert (explorer.agent, explorer.iterations, explorer.tool_calls, explorer.repeats) == ("Explore", 2, 2, 1)
    assert (unnamed.agent, unnamed.iterations, unnamed.tool_calls) == ("subagent", 1, 0)
    assert explorer.parent is main
    assert unnamed.parent is main
    assert {turn.conversation_id for turn in (main, explorer, unnamed)} == {"s1"}
    assert main.usage is not None
    assert main.usage.output == 20
    assert main.total_tokens == 5 * 110


def test_a_sub_agents_own_file_belongs_to_the_session(scanned):
    more = {"isSidechain": True, "agentId": "ae26"}
    (turn,), _ = scanned(event("user", "Search for it", **more), *looping(4, **more))
    assert (turn.conversation_id, turn.turn_id, turn.agent) == ("s1", "s1/ae26/1", "subagent")
    assert (turn.tool_calls, turn.repeats, turn.parent) == (4, 3, None)


def test_a_sub_agents_own_file_says_of_what_kind_it_is(scanned):
    more = {"isSidechain": True, "agentId": "ae26"}
    replies = [
        {**line, "attributionAgent": "Explore"} if line["type"] == "assistant" else line for line in looping(2, **more)
    ]
    (turn,), _ = scanned(event("user", "Search for it", **more), *replies)
    assert (turn.agent, turn.tool_calls) == ("Explore", 2)


def test_what_reports_its_end_from_the_background_is_not_the_user(scanned):
    notice = "<task-notification><status>completed</status></task-notification>"
    (turn,), _ = scanned(event("user", "Find it"), *looping(2), said(text("Started."), "m8"), event("user", notice))
    assert (turn.iterations, turn.tool_calls) == (3, 2)
    (turn,), _ = scanned(
        event("user", "Find it"),
        said(text("Started."), "m8"),
        event("user", notice),
        *looping(2),
        said(text("."), "m9"),
    )
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (4, 2, "final_answer")


def test_a_request_that_failed_and_was_made_again_is_a_model_call(scanned):
    failed = {"type": "system", "subtype": "api_error", "uuid": "e", "sessionId": "s1", "retryAttempt": 1}
    (turn,), _ = scanned(event("user", "Find it"), failed, failed, *looping(1), failed, said(text("No."), "m7"))
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (5, 1, "final_answer")


def test_a_broken_line_is_named_and_the_rest_is_read(scanned):
    lines = [event("user", "Find it"), *looping(2)]
    no_tool = said({"type": "tool_use", "id": "t7", "input": {}}, "m7")
    (turn,), unread = scanned(lines[0], lines[1], '{"type": "user", "mess', lines[2], no_tool, *lines[3:])
    assert turn.tool_calls == 2
    assert unread == [
        "3: cut off at column 22: the JSON that begins here is not closed",
        "5: an event that cannot be read: a field that its format needs is missing",
    ]

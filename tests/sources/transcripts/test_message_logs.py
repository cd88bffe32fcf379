"""Message lists and request logs of OpenAI's and Anthropic's APIs: conversations, rounds, tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sources.transcripts.judgement import judged

Message = dict[str, Any]


def chat_call(call: str, args: str, tool: str = "search") -> Message:
    return {"id": call, "type": "function", "function": {"name": tool, "arguments": args}}


def chat(*calls: Message, content: str | None = None) -> Message:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def chat_result(call: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": call, "content": content}


def chat_response(number: int, message: Message) -> Message:
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1767600000 + number,
        "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def claude(*blocks: Message) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def claude_use(call: str, args: Any, tool: str = "search") -> Message:
    return {"type": "tool_use", "id": call, "name": tool, "input": args}


def claude_result(call: str, content: Any, failed: bool = False) -> Message:
    block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": failed}
    return {"role": "user", "content": [block]}


def claude_response(number: int, message: Message) -> Message:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0, "output_tokens": 10}
    return {**message, "id": f"msg_{number}", "type": "message", "model": "claude-sonnet-4-5", "usage": usage}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


CALLS = [("search", {"q": "cheap flights"}, "no flights")] * 6


def chat_messages(calls: list[tuple[str, Any, str]] = CALLS) -> list[Message]:
    messages = [{"role": "system", "content": "You help."}, user("Find one")]
    for n, (tool, args, answer) in enumerate(calls):
        messages += [chat(chat_call(f"c{n}", json.dumps(args), tool)), chat_result(f"c{n}", answer)]
    return messages


def claude_messages(calls: list[tuple[str, Any, str]] = CALLS) -> list[Message]:
    messages = [user("Find one")]
    for n, (tool, args, answer) in enumerate(calls):
        messages += [claude(claude_use(f"c{n}", args, tool)), claude_result(f"c{n}", answer)]
    return messages


def items(calls: list[tuple[str, Any, str]] = CALLS) -> list[Message]:
    said: list[Message] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Find one"}]}]
    for n, (tool, args, answer) in enumerate(calls):
        said += [
            {"type": "reasoning", "id": f"rs_{n}", "summary": []},
            {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": tool, "arguments": json.dumps(args)},
            {"type": "function_call_output", "call_id": f"c{n}", "output": answer},
        ]
    return said


def log(messages: list[Message], respond: Any, key: str = "messages") -> list[Message]:
    """A request for each reply in the messages, with all before it, and the reply as its response."""
    return [
        {"request": {"model": "m", key: messages[:at]}, "response": respond(at, message)}
        for at, message in enumerate(messages)
        if message.get("role") == "assistant"
    ]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([chat_messages()], id="chat, a list"),
        pytest.param([{"messages": chat_messages()}], id="chat, an object"),
        pytest.param(chat_messages(), id="chat, one message a line"),
        pytest.param(log(chat_messages(), chat_response), id="chat, a log"),
        pytest.param([claude_messages()], id="anthropic, a list"),
        pytest.param(claude_messages(), id="anthropic, one message a line"),
        pytest.param(log(claude_messages(), claude_response), id="anthropic, a log"),
        pytest.param([items()], id="responses, a list"),
        pytest.param([{"input": items()}], id="responses, an object"),
        pytest.param(items(), id="responses, one item a line"),
        pytest.param([json.dumps(chat_messages(), indent=2)], id="chat, an indented document"),
        pytest.param([json.dumps([{"messages": claude_messages()}], indent=1)], id="anthropic, an indented document"),
    ],
)
def test_the_same_calls_are_judged_as_by_hand(scanned, by_hand, records):
    (turn,), unread = scanned(*records)
    by_hand_turn = by_hand(CALLS)
    expected = judged(by_hand_turn)
    if len(records) > 1 and "request" in records[0]:
        # No request says what the last call of a log returned.
        assert turn.tool_calls == len(CALLS)
        assert turn.verdict is not None
        assert turn.verdict.severity == "stuck"
        assert judged(turn)["verdicts"] == expected["verdicts"][: len(turn.verdicts)]
    else:
        assert judged(turn) == expected
    assert unread == []
    assert turn.conversation_id == "1"


@pytest.mark.parametrize(
    ("messages", "respond"), [(chat_messages(), chat_response), (claude_messages(), claude_response)]
)
def test_a_log_counts_each_reply_once_with_its_tokens(scanned, messages, respond):
    (turn,), _ = scanned(*log(messages, respond))
    assert (turn.iterations, turn.tool_calls) == (6, 6)
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (600, 60)
    assert turn.unpriced_models == set()
    assert turn.spend_usd


def test_calls_of_one_reply_share_a_round_and_a_reply_after_the_result_is_another(scanned):
    (turn,), _ = scanned(
        [
            user("Both"),
            chat(chat_call("a", "{}"), chat_call("b", '{"n": 1}')),
            chat_result("b", "two"),
            chat_result("a", "one"),
            chat(content="Both are there."),
        ]
    )
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (2, 2, "final_answer")


def test_turns_are_split_at_messages_of_the_user(scanned):
    first, second = chat_messages(CALLS[:2]), chat_messages(CALLS[:1])[1:]
    turns, _ = scanned({"conversation_id": "c-7", "messages": [*first, chat(content="None."), *second]})
    assert [(turn.turn_id, turn.iterations, turn.tool_calls) for turn in turns] == [("c-7/1", 3, 2), ("c-7/2", 1, 1)]
    assert [turn.conversation_id for turn in turns] == ["c-7", "c-7"]


def test_conversations_that_go_on_side_by_side_in_a_log_are_told_apart(scanned):
    other = [{"role": "system", "content": "Another prompt"}, *chat_messages()[1:]]
    both = zip(log(chat_messages(), chat_response), log(other, chat_response), strict=True)
    turns, _ = scanned(*(record for pair in both for record in pair))
    assert [(turn.conversation_id, turn.tool_calls, turn.repeats) for turn in turns] == [("1", 6, 5), ("2", 6, 5)]


def test_the_same_first_request_again_is_another_conversation(scanned):
    turns, _ = scanned(*log(chat_messages(), chat_response), *log(chat_messages(), chat_response))
    assert sorted(turn.tool_calls for turn in turns) == [6, 6]


def test_a_moved_cache_mark_does_not_make_another_conversation(scanned):
    records = log(claude_messages(), claude_response)
    for record in records:
        last = record["request"]["messages"][-1] = json.loads(json.dumps(record["request"]["messages"][-1]))
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"][-1]["cache_control"] = {"type": "ephemeral"}
    (turn,), _ = scanned(*records)
    assert turn.tool_calls == 6


def test_a_named_conversation_goes_on_when_its_first_messages_were_cut(scanned):
    records = log(chat_messages(), chat_response)
    for record in records:
        record["session_id"] = "s-1"
    for record in records[3:]:
        record["request"]["messages"] = record["request"]["messages"][4:]
    (turn,), _ = scanned(*records)
    assert (turn.conversation_id, turn.iterations, turn.tool_calls) == ("s-1", 6, 6)


def test_responses_that_name_the_one_before_are_one_conversation(scanned):
    def response(number: int, *output: Message) -> Message:
        details = {"cached_tokens": 80}
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "input_tokens_details": details}
        return {
            "id": f"resp_{number}",
            "object": "response",
            "status": "completed",
            "created_at": 1767600000 + number,
            "model": "gpt-5-mini",
            "previous_response_id": f"resp_{number - 1}" if number else None,
            "output": list(output),
            "usage": usage,
        }

    asked = items(CALLS[:3])
    calls = [item for item in asked if item.get("type") == "function_call"]
    results = [item for item in asked if item.get("type") == "function_call_output"]
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "None."}]}
    (turn,), unread = scanned(
        {"request": {"input": "Find one"}, "response": response(0, calls[0])},
        *({"request": {"input": [results[n]]}, "response": response(n + 1, calls[n + 1])} for n in range(2)),
        {"request": {"input": [results[2]]}, "response": response(3, answer)},
    )
    assert unread == []
    assert (turn.iterations, turn.tool_calls, turn.duplicates, turn.stop_reason) == (4, 3, 1, "final_answer")
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.cache_read) == (400, 320)


def test_tools_that_run_at_the_provider_are_calls_with_results(scanned):
    anthropic = [
        user("Search"),
        claude(
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
            {"type": "text", "text": "Found."},
        ),
    ]
    openai = [
        {"type": "message", "role": "user", "content": "Search"},
        {"type": "mcp_call", "id": "m1", "name": "roll", "arguments": "{}", "output": "4", "error": None},
        {"type": "web_search_call", "id": "w1", "action": {"type": "search", "query": "x"}, "status": "completed"},
    ]
    (first, second), _ = scanned({"messages": anthropic}, {"input": openai})
    assert (first.iterations, first.tool_calls) == (1, 1)
    assert (second.iterations, second.tool_calls) == (1, 2)


def test_a_request_that_failed_is_a_model_call(scanned):
    (turn,), _ = scanned(
        {"request": {"messages": [user("Hi")], "model": "gpt-4o"}, "response": {"error": {"message": "busy"}}},
        {"request": {"messages": [user("Hi")]}, "response": chat_response(1, chat(content="Hello"))},
    )
    assert (turn.iterations, turn.stop_reason) == (2, "final_answer")


def test_broken_lines_are_named_and_the_rest_is_read(scanned):
    turns, unread = scanned(
        {"messages": chat_messages(CALLS[:1])},
        "{broken",
        {"note": "something else"},
        {"messages": [user("x"), {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}]},
        {"messages": chat_messages(CALLS[:1])},
    )
    assert [turn.tool_calls for turn in turns if turn.tool_calls] == [1, 1]
    assert unread == [
        "2: not JSON at column 2: Expecting property name enclosed in double quotes",
        "3: a message that cannot be read: a field has a value that it cannot have in its format",
        "4: a message that cannot be read: a field that its format needs is missing",
    ]


def test_a_text_that_was_cut_within_a_character_is_read(scanned):
    (turn,), unread = scanned([user("Hi \ud83d"), chat(chat_call("a", "{}")), chat_result("a", "cut \ud83d")])
    assert (turn.tool_calls, unread) == (1, [])

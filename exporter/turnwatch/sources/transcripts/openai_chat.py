"""Messages of OpenAI's chat completions, and of all who copy them: tool_calls and messages of the role tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnwatch.core.events import MISSING
from turnwatch.core.usage import read_provider, read_usage
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import Recording, plain_text


def claims_message(message: object) -> bool:
    """Whether something is a chat message; text alone is written the same way by Anthropic."""
    return (
        isinstance(message, dict)
        and message.get("role") in ("system", "developer", "user", "assistant", "tool", "function")
        and ("content" in message or "tool_calls" in message or "function_call" in message)
    )


def claims_response(response: dict[str, Any]) -> bool:
    """Whether a response is a chat completion."""
    choices = response.get("choices")
    return isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices)


def add_message(recording: Recording, line: int, message: dict[str, Any], at: float | None) -> Iterator[RecordedTurn]:
    """Record one message of a list."""
    role = message.get("role")
    if role == "assistant":
        recording.close_reply()
        usage = message.get("usage")
        recording.reply(
            line,
            model=str(message.get("model") or ""),
            usage=read_usage(usage) if isinstance(usage, dict) else None,
            at=at,
        )
        _add_said(recording, line, message, at)
    elif role in ("tool", "function"):
        call_id = message.get("tool_call_id")
        failed = message.get("status") == "error" or bool(message.get("is_error"))
        recording.result(str(call_id) if call_id else None, message.get("content"), failed=failed, at=at)
    elif role == "user":
        yield from recording.user(line)


def add_response(recording: Recording, line: int, response: dict[str, Any], at: float | None) -> None:
    """Record the response to a request."""
    recording.reply(
        line,
        reply_id=response.get("id"),
        model=str(response.get("model") or ""),
        provider=read_provider(response) or "",
        usage=read_usage(response.get("usage")) if isinstance(response.get("usage"), dict) else None,
        at=at,
    )
    # Of several choices the client goes on with one; which, the next request tells, and most ask for one only.
    for choice in response["choices"][:1]:
        message = choice.get("message")
        if isinstance(message, dict):
            _add_said(recording, line, message, at)


def _add_said(recording: Recording, line: int, message: dict[str, Any], at: float | None) -> None:
    text = plain_text(message.get("content"))
    if isinstance(text, str):
        recording.text(text)
    for call in message.get("tool_calls") or ():
        # Custom tools have free text for an input instead of a function's arguments.
        asked = call.get("function") or call.get("custom") or call
        args = asked.get("arguments", asked.get("input", MISSING))
        call_id = call.get("id")
        recording.call(line, str(asked["name"]), args, call_id=str(call_id) if call_id else None, at=at)
    function = message.get("function_call")
    if isinstance(function, dict):
        recording.call(line, str(function["name"]), function.get("arguments", MISSING), at=at)

"""Messages of Anthropic's API: content blocks, tool_use and tool_result joined by id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from turnwatch.core.events import MISSING, Usage
from turnwatch.core.usage import read_usage
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import Recording

# Tools that run at the provider: asked for and answered within one reply.
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_BLOCKS: Final = _CALLS | {"tool_result", "thinking", "redacted_thinking"}


def claims_message(message: object) -> bool:
    """Whether a message is surely one of Anthropic's, and not one that OpenAI would write the same way."""
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(_kind(block) in _BLOCKS for block in content)


def claims_response(response: dict[str, Any]) -> bool:
    """Whether a response is one of the Messages API."""
    return response.get("type") == "message" and response.get("role") == "assistant"


def add_message(recording: Recording, line: int, message: dict[str, Any], at: float | None) -> Iterator[RecordedTurn]:
    """Record one message of a list."""
    content = message.get("content")
    if message.get("role") == "assistant":
        recording.close_reply()
        recording.reply(line, model=str(message.get("model") or ""), usage=usage_of(message), at=at)
        add_said(recording, line, content, at)
    elif has_results(content):
        add_results(recording, content, at)
    elif message.get("role") == "user":
        yield from recording.user(line)


def add_response(recording: Recording, line: int, response: dict[str, Any], at: float | None) -> None:
    """Record the response to a request."""
    recording.reply(
        line,
        reply_id=response.get("id"),
        model=str(response.get("model") or ""),
        provider="anthropic",
        usage=usage_of(response),
        at=at,
    )
    add_said(recording, line, response.get("content"), at)


def add_said(recording: Recording, line: int, content: object, at: float | None) -> None:
    """Record the blocks of a reply: text, calls, and results of tools that the provider ran."""
    if isinstance(content, str):
        recording.text(content)
    for block in content if isinstance(content, list) else ():
        kind = _kind(block)
        if kind == "text":
            recording.text(str(block.get("text") or ""))
        elif kind in _CALLS:
            recording.call(line, str(block["name"]), block.get("input", MISSING), call_id=_id(block.get("id")), at=at)
        elif kind.endswith("tool_result"):
            _add_result(recording, block, at)


def has_results(content: object) -> bool:
    """Whether the content of a user message answers calls: then it is no message of the user's."""
    return isinstance(content, list) and any(_kind(block) == "tool_result" for block in content)


def add_results(recording: Recording, content: object, at: float | None) -> None:
    """Record the tool results in the content of a user message."""
    for block in content if isinstance(content, list) else ():
        if _kind(block) == "tool_result":
            _add_result(recording, block, at)


def usage_of(reply: dict[str, Any]) -> Usage | None:
    """The tokens of a reply; None where it does not say."""
    usage = reply.get("usage")
    return read_usage(usage) if isinstance(usage, dict) else None


def _add_result(recording: Recording, block: dict[str, Any], at: float | None) -> None:
    content = block.get("content")
    failed = bool(block.get("is_error")) or (isinstance(content, dict) and str(content.get("type")).endswith("_error"))
    recording.result(_id(block.get("tool_use_id")), content, failed=failed, at=at)


def _kind(block: object) -> str:
    return str(block.get("type")) if isinstance(block, dict) else ""


def _id(value: object) -> str | None:
    return str(value) if value else None

"""The text of a model's reply that asks for no tool: said again and again, it is a monologue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_TOOL_BLOCKS: Final = frozenset({"tool_use", "server_tool_use", "function_call", "tool_call", "mcp_call"})


def reply_text(reply: object) -> str | None:
    """The text of a reply of OpenAI (chat and Responses), Anthropic or Gemini, as object or dict.

    Returns:
        None when the reply asks for a tool, holds no text, or has no known form. Never raises.
    """
    try:
        blocks = list(_blocks(reply))
    except Exception:
        return None
    if any(_field(block, "type") in _TOOL_BLOCKS or _field(block, "function_call") for block in blocks):
        return None
    texts = [text for block in blocks if isinstance(text := _field(block, "text"), str)]
    return "".join(texts).strip() or None


def _blocks(reply: object) -> Iterable[Any]:
    for choice in (_field(reply, "choices") or ())[:1]:  # OpenAI chat
        message = _field(choice, "message")
        for call in _field(message, "tool_calls") or ():
            yield {"type": "tool_call", "call": call}
        yield {"type": "text", "text": _field(message, "content")}
    content = _field(reply, "content")  # Anthropic
    if isinstance(content, list | tuple):
        yield from content
    for item in _field(reply, "output") or ():  # OpenAI Responses
        if _field(item, "type") == "message":
            yield from _field(item, "content") or ()
        else:
            yield item
    for candidate in (_field(reply, "candidates") or ())[:1]:  # Gemini
        yield from _field(_field(candidate, "content"), "parts") or ()


def _field(record: object, name: str) -> Any:
    return record.get(name) if isinstance(record, dict) else getattr(record, name, None)

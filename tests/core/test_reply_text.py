from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from turnwatch.core.reply_text import reply_text

TEXTS: dict[str, Any] = {
    "openai chat": {"choices": [{"message": {"content": "Let me check."}}]},
    "openai chat object": SimpleNamespace(
        choices=[SimpleNamespace(message=SimpleNamespace(content="Let me check.", tool_calls=None))]
    ),
    "openai responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": "Let me check."}]},
        ]
    },
    "anthropic": {"content": [{"type": "text", "text": "Let me "}, {"type": "text", "text": "check."}]},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Let me check."}]}}]},
}
NONE: dict[str, Any] = {
    "openai chat tool call": {"choices": [{"message": {"content": "Let me check.", "tool_calls": [{"id": "1"}]}}]},
    "openai responses tool call": {"output": [{"type": "function_call", "name": "search"}]},
    "anthropic tool use": {"content": [{"type": "text", "text": "Let me check."}, {"type": "tool_use", "id": "1"}]},
    "gemini tool call": {"candidates": [{"content": {"parts": [{"function_call": {"name": "search"}}]}}]},
    "only usage": {"input_tokens": 1, "output_tokens": 1},
    "empty": {"choices": []},
    "nothing": None,
    "odd": {"choices": 7, "content": 3},
    "hostile": SimpleNamespace(choices=[SimpleNamespace()]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_of_a_reply_without_a_tool_call(name: str):
    assert reply_text(TEXTS[name]) == "Let me check."


@pytest.mark.parametrize("name", NONE)
def test_no_text_where_a_tool_is_asked_for_or_nothing_is_said(name: str):
    assert reply_text(NONE[name]) is None

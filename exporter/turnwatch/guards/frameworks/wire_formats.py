"""What requests and replies of model clients say: which tools were asked for, what they returned, what was said.

Works on the objects of the client libraries and on plain dictionaries alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call in a reply."""

    call_id: str
    tool: str
    arguments: object


@dataclass(frozen=True, slots=True)
class Answered:
    """A tool's result in a request."""

    call_id: str
    result: object
    failed: bool = False


class Streamed(Protocol):
    """Puts a stream's events together."""

    def add(self, event: Any) -> None:
        """Take one event in."""

    def reply(self) -> Any:
        """What the events amount to, in the shape of a whole reply."""


class WireFormat(Protocol):
    """One API of a model provider."""

    provider: str

    def answered(self, body: Mapping[str, Any]) -> list[Answered]:
        """The tool results in a request, the latest ones at least."""

    def asked(self, reply: Any) -> list[Asked]:
        """The tool calls in a reply."""

    def text(self, reply: Any) -> str:
        """What a reply says in words."""

    def with_nudge(self, body: Mapping[str, Any], nudge: str) -> dict[str, Any]:
        """The request with one more message to the model."""

    def streamed(self) -> Streamed:
        """For the events of one streamed reply."""


def get(obj: Any, name: str, default: Any = None) -> Any:
    """A field of an object or a mapping."""
    value = obj.get(name, default) if isinstance(obj, Mapping) else getattr(obj, name, default)
    return default if value is None else value


def format_of(url: str) -> WireFormat | None:
    """The API behind a request's path; None for everything that is no model call."""
    path = url.split("?")[0].rstrip("/")
    for end, wire_format in _FORMATS.items():
        if path.endswith(end):
            return wire_format
    return None


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _joined(parts: Any) -> Any:
    """The text of content that may be a string or a list of parts."""
    if isinstance(parts, str) or not isinstance(parts, list | tuple):
        return parts
    texts = [part if isinstance(part, str) else get(part, "text") for part in parts]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else parts


# OpenAI Chat Completions


@dataclass(slots=True)
class _ChatStream:
    usage: Any = None
    model: str = ""
    words: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, event: Any) -> None:
        self.usage = get(event, "usage") or self.usage
        self.model = get(event, "model") or self.model
        for choice in _list(get(event, "choices"))[:1]:
            delta = get(choice, "delta")
            if isinstance(content := get(delta, "content"), str):
                self.words.append(content)
            for part in _list(get(delta, "tool_calls")):
                call = self.calls.setdefault(
                    get(part, "index", 0), {"id": "", "function": {"name": "", "arguments": ""}}
                )
                call["id"] = get(part, "id") or call["id"]
                function = get(part, "function")
                call["function"]["name"] += get(function, "name", "")
                call["function"]["arguments"] += get(function, "arguments", "")

    def reply(self) -> Any:
        message = {"content": "".join(self.words), "tool_calls": list(self.calls.values())}
        return {"model": self.model, "usage": self.usage, "choices": [{"message": message}]}


class _Chat:
    provider = "openai"

    def answered(self, body: Mapping[str, Any]) -> list[Answered]:
        return [
            Answered(str(get(message, "tool_call_id", "")), _joined(get(message, "content")))
            for message in _list(body.get("messages"))
            if get(message, "role") == "tool"
        ]

    def asked(self, reply: Any) -> list[Asked]:
        return [
            Asked(
                str(get(call, "id", "")),
                get(get(call, "function") or get(call, "custom"), "name", ""),
                get(get(call, "function"), "arguments") or get(get(call, "custom"), "input"),
            )
            for choice in _list(get(reply, "choices"))[:1]
            for call in _list(get(get(choice, "message"), "tool_calls"))
        ]

    def text(self, reply: Any) -> str:
        for choice in _list(get(reply, "choices"))[:1]:
            content = get(get(choice, "message"), "content")
            return content if isinstance(content, str) else ""
        return ""

    def with_nudge(self, body: Mapping[str, Any], nudge: str) -> dict[str, Any]:
        return {**body, "messages": [*_list(body.get("messages")), {"role": "system", "content": nudge}]}

    def streamed(self) -> Streamed:
        return _ChatStream()


# OpenAI Responses


@dataclass(slots=True)
class _ResponseStream:
    response: Any = None

    def add(self, event: Any) -> None:
        if get(event, "type") in ("response.completed", "response.incomplete", "response.failed"):
            self.response = get(event, "response")

    def reply(self) -> Any:
        return self.response


class _Responses:
    provider = "openai"

    def answered(self, body: Mapping[str, Any]) -> list[Answered]:
        return [
            Answered(str(get(item, "call_id", "")), _joined(get(item, "output")))
            for item in _list(body.get("input"))
            if get(item, "type") in ("function_call_output", "custom_tool_call_output")
        ]

    def asked(self, reply: Any) -> list[Asked]:
        return [
            Asked(str(get(item, "call_id", "")), get(item, "name", ""), get(item, "arguments") or get(item, "input"))
            for item in _list(get(reply, "output"))
            if get(item, "type") in ("function_call", "custom_tool_call")
        ]

    def text(self, reply: Any) -> str:
        return "".join(
            get(part, "text", "")
            for item in _list(get(reply, "output"))
            if get(item, "type") == "message"
            for part in _list(get(item, "content"))
        )

    def with_nudge(self, body: Mapping[str, Any], nudge: str) -> dict[str, Any]:
        asked = body.get("input")
        items = [{"role": "user", "content": asked}] if isinstance(asked, str) else _list(asked)
        return {**body, "input": [*items, {"role": "system", "content": nudge}]}

    def streamed(self) -> Streamed:
        return _ResponseStream()


# Anthropic Messages


@dataclass(slots=True)
class _MessageStream:
    model: str = ""
    usages: list[Any] = field(default_factory=list)
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, event: Any) -> None:
        kind = get(event, "type")
        if kind == "message_start":
            message = get(event, "message")
            self.model = get(message, "model", "")
            self.usages.append(get(message, "usage"))
        elif kind == "message_delta":
            self.usages.append(get(event, "usage"))
        elif kind == "content_block_start":
            block = get(event, "content_block")
            self.blocks[get(event, "index", 0)] = {
                "type": get(block, "type"),
                "id": get(block, "id", ""),
                "name": get(block, "name", ""),
                "text": "",
                "json": "",
            }
        elif kind == "content_block_delta":
            block, delta = self.blocks.get(get(event, "index", 0)), get(event, "delta")
            if block is not None:
                block["text"] += get(delta, "text", "")
                block["json"] += get(delta, "partial_json", "")

    def reply(self) -> Any:
        content = [{**block, "input": block["json"] or "{}"} for block in self.blocks.values()]
        # The first usage has the input, the last the output: counts run on, so the largest of each is right.
        usage: dict[str, Any] = {}
        for one in self.usages:
            for name in _MESSAGE_USAGE:
                number = get(one, name)
                if isinstance(number, int):
                    usage[name] = max(number, usage.get(name, 0))
        return {"model": self.model, "usage": usage or None, "content": content}


_MESSAGE_USAGE: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class _Messages:
    provider = "anthropic"

    def answered(self, body: Mapping[str, Any]) -> list[Answered]:
        return [
            Answered(str(get(block, "tool_use_id", "")), _joined(get(block, "content")), bool(get(block, "is_error")))
            for message in _list(body.get("messages"))
            for block in _list(get(message, "content"))
            if get(block, "type") == "tool_result"
        ]

    def asked(self, reply: Any) -> list[Asked]:
        return [
            Asked(str(get(block, "id", "")), get(block, "name", ""), _parsed(get(block, "input")))
            for block in _list(get(reply, "content"))
            if get(block, "type") == "tool_use"
        ]

    def text(self, reply: Any) -> str:
        return "".join(get(block, "text", "") for block in _list(get(reply, "content")) if get(block, "type") == "text")

    def with_nudge(self, body: Mapping[str, Any], nudge: str) -> dict[str, Any]:
        # Behind the tool results, not in the system prompt: that would throw away the whole prompt cache.
        messages = _list(body.get("messages"))
        note = {"type": "text", "text": nudge}
        if messages and get(messages[-1], "role") == "user":
            content = get(messages[-1], "content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)
            messages[-1] = {"role": "user", "content": [*blocks, note]}
        else:
            messages.append({"role": "user", "content": [note]})
        return {**body, "messages": messages}

    def streamed(self) -> Streamed:
        return _MessageStream()


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


_FORMATS: Final[dict[str, WireFormat]] = {
    "/chat/completions": _Chat(),
    "/responses": _Responses(),
    "/messages": _Messages(),
}

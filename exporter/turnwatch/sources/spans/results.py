"""What a tool call came back with: its result, or its error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from turnwatch.sources.spans.dialect import CONVENTIONS
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.values import MISSING, is_redacted, json_of

_EVENTS: Final[tuple[tuple[str, str], ...]] = CONVENTIONS.tool["result_events"]
_EMPTY_IS_MISSING: Final = frozenset(CONVENTIONS.tool["empty_is_missing"])

# A message written by repr(): its text, and what follows it, of which the call id differs on every call.
_MESSAGE_REPR: Final = re.compile(r"content=(?P<quote>['\"])(?P<text>.*)(?P=quote) name=(?P<rest>.*)", re.DOTALL)
# A result of Agno's written by repr().
_FAILURE_REPR: Final = "status='failure' "
_GEMINI_RESPONSE: Final = frozenset({"id", "name", "response"})
_MAX_WRAPPERS: Final = 4


@dataclass(slots=True)
class ToolResult:
    """A tool's result as a span tells it.

    Attributes:
        value: The result, or the error's text; MISSING when the span does not carry it.
        failed: The call failed.
        error_type: Class of the error, where there is one.
        tool: The tool's name, where the result names it.
        call_id: The call's id, where only the result has it.
    """

    value: Any = MISSING
    failed: bool = False
    error_type: str | None = None
    tool: str = ""
    call_id: str = ""


def result_of(span: SpanData) -> ToolResult:
    """The result a tool span carries."""
    attributes = span.attributes
    raw = _raw(span)
    result = ToolResult() if raw is None or is_redacted(raw) else opened(raw)
    error_type = attributes.get("error.type")
    if span.failed or error_type is not None:
        result.failed = True
    elif not result.failed:
        for name, value in span.shape.failed_when:
            found = attributes.get(name)
            if found is not None and str(found).lower() == value.lower():
                result.failed = True
                break
    if result.failed:
        result.error_type = str(error_type) if error_type is not None else _exception_type(span)
        if result.value is MISSING:
            text = _exception_text(span) or span.status_text
            if text and not is_redacted(text):
                result.value = text
    return result


def _raw(span: SpanData) -> Any:
    attributes = span.attributes
    for name in span.shape.result:
        value = attributes.get(name)
        if value is not None and not (name in _EMPTY_IS_MISSING and value in ("{}", "[]", "")):
            return value
    for event_name, attribute in _EVENTS if span.events else ():
        for event in span.events:
            if event.name == event_name:
                value = event.attributes.get(attribute)
                if value is not None:
                    return value
    return None


def _exception_type(span: SpanData) -> str | None:
    for event in span.events:
        if event.name == "exception":
            kind = event.attributes.get("exception.type")
            if kind:
                return str(kind).rsplit(".", 1)[-1]
    return None


def _exception_text(span: SpanData) -> str:
    for event in span.events:
        if event.name == "exception":
            return str(event.attributes.get("exception.message") or "")
    return ""


def opened(raw: object) -> ToolResult:
    """A result out of the messages that frameworks wrap round it, whose ids differ on every call."""
    result = ToolResult(raw)
    if _open_repr(raw, result):
        return result
    if type(raw) is str and raw.startswith(_FAILURE_REPR):
        result.failed = True
        return result
    value = json_of(raw)
    for _ in range(_MAX_WRAPPERS):
        if not isinstance(value, dict) or (value.keys() == {"output"} and _open_repr(value["output"], result)):
            break
        inner = _content(value, result)
        if inner is None:
            break
        result.value = inner
        value = json_of(inner)
    return result


def _open_repr(raw: object, result: ToolResult) -> bool:
    """Take the text out of a message that repr() wrote, if it is one."""
    match = _MESSAGE_REPR.match(raw) if type(raw) is str and raw.startswith("content=") else None
    if match is None:
        return False
    result.value = match["text"]
    result.failed = "status='error'" in match["rest"]
    return True


def _content(value: dict[str, Any], result: ToolResult) -> Any:
    """What is inside one envelope, or None when there is none."""
    if "lc" in value and isinstance(value.get("kwargs"), dict):  # LangChain's serialised objects
        return value["kwargs"]
    if isinstance(value.get("output"), dict) and value.keys() <= {"output", "kwargs"}:  # LangChain's callbacks
        return value["output"]
    if value.get("type") == "tool" and isinstance(value.get("data"), dict):  # LangChain's message_to_dict
        return value["data"]
    if "goto" in value and isinstance(value.get("update"), dict):  # LangGraph's Command, with the whole history in it
        messages = value["update"].get("messages")
        last = messages[-1] if isinstance(messages, list) and messages else None
        if not isinstance(last, dict):
            return None
        message = last["kwargs"] if "lc" in last and isinstance(last.get("kwargs"), dict) else last
        return message if message.get("type") == "tool" else None
    if "content" in value and ("tool_call_id" in value or value.get("type") == "tool"):
        result.failed = result.failed or value.get("status") == "error"
        result.tool = str(value.get("name") or result.tool)
        result.call_id = str(value.get("tool_call_id") or result.call_id)
        return value["content"]
    if isinstance(value.get("tool_output"), dict) and "tool_kwargs" in value:  # LlamaIndex's agents
        result.call_id = str(value.get("tool_id") or result.call_id)
        return value["tool_output"]
    if "raw_output" in value and "tool_name" in value:  # LlamaIndex
        result.tool = str(value["tool_name"])
        result.failed = result.failed or bool(value.get("is_error"))
        return value["raw_output"]
    if value.keys() == _GEMINI_RESPONSE:
        result.tool = str(value["name"] or result.tool)
        result.call_id = str(value["id"] or result.call_id)
        return value["response"]
    if "result" in value and value.keys() <= {"result", "is_error"}:
        result.failed = result.failed or bool(value.get("is_error"))
        return value["result"]
    return None

"""What a span says, in turnwatch's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, final

from turnwatch.core.events import MISSING, ModelCall, ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.sources.spans.arguments import arguments_of
from turnwatch.sources.spans.dialect import Dialect
from turnwatch.sources.spans.haystack import reply_meta
from turnwatch.sources.spans.messages import as_openinference
from turnwatch.sources.spans.results import result_of
from turnwatch.sources.spans.shapes import COUNTED, COUNTED_MODEL, COUNTED_TOOL, METADATA
from turnwatch.sources.spans.span import NO_ATTRIBUTES, SERVER, SMALL_SPAN_BYTES, SpanData, weight_of
from turnwatch.sources.spans.usage import usage_of
from turnwatch.sources.spans.values import first, first_text, json_of, shortened, unquoted

_NS: Final = 1e-9
_LONGEST_CALL_SECONDS: Final = 86_400
_LONGEST_WAIT_SECONDS: Final = 3600.0
_REPLY_ID: Final = re.compile(r'\[?\{"id": ?"([^"\\]{1,200})"')
_LONGEST_ID: Final = 200
_OWN_IDS: Final = ("run-", "lc_run")
_LATER_ID: Final = re.compile(r'"id": ?"([^"\\]{1,200})"')
_NO_CONVERSATION: Final = ("", "null")
# What instrumentations put round a tool's name to make the span's.
_NAME_STARTS: Final = ("execute_tool ", "running tool: ", "MCP send tools/call ", "tools/call ", "MCP tools/call ")
_NAME_ENDS: Final = (".__call__", ".tool", ".run", ".acall", ".call")


@final
class ToolFact:
    """A tool call that a span stands for.

    Attributes:
        call: The call, its arguments and what came of it.
        counted: Somebody counts this call already.
        awaits: Whether a span inside is yet to tell how the call ended; None where nothing shows that or the contrary.
        is_servers: Who tells of it is whoever was called, as MCP servers do.
        weight: About how many bytes it takes while it waits.
    """

    __slots__ = (
        "awaits",
        "call",
        "counted",
        "dialect",
        "end_ns",
        "is_servers",
        "scope",
        "span_id",
        "start_ns",
        "weight",
    )

    def __init__(self, span: SpanData, dialect: Dialect, call: ToolCall) -> None:
        self.call = call
        self.dialect = dialect
        self.scope = span.scope
        self.span_id = span.span_id
        self.start_ns = span.start_ns
        self.end_ns = span.end_ns
        attributes, shape = span.attributes, span.shape
        kept = map(attributes.get, shape.kept_of_tool)
        self.weight = span.weight if span.events else SMALL_SPAN_BYTES + weight_of(kept)
        self.awaits: bool | None = None
        self.is_servers = span.kind == SERVER
        self.counted = shape.may_be_counted and (is_counted(attributes) or _is_counted_tool(attributes, call.tool))

    def fail(self, error_type: str | None) -> None:
        """Take it from a span inside that the call failed."""
        self.call.outcome = "error"
        self.call.error_type = self.call.error_type or error_type
        self.awaits = False

    def hear(self, inner: ToolFact) -> None:
        """Take over how the call ended from a span inside that stands for it as well."""
        if inner.call.outcome == "error":
            self.fail(inner.call.error_type)
        if self.awaits is not False:
            self.awaits = inner.awaits


@final
class ModelFact:
    """A model call that a span stands for.

    Attributes:
        call: The call and its usage.
        response_id: The provider's id of the reply, or an empty text.
        attributes: The span's attributes, where there are messages among them.
        counted: Somebody counts this call already.
        told_late: The span was written when the call was over; it began before its span.
        weight: About how many bytes it takes while it waits.
    """

    __slots__ = (
        "attributes",
        "call",
        "counted",
        "dialect",
        "end_ns",
        "response_id",
        "scope",
        "span_id",
        "start_ns",
        "told_late",
        "weight",
    )

    def __init__(self, span: SpanData, dialect: Dialect, call: ModelCall) -> None:
        self.call = call
        self.dialect = dialect
        self.scope = span.scope
        self.span_id = span.span_id
        attributes, shape = span.attributes, span.shape
        self.start_ns = _begun_ns(span) if shape.first_token else span.start_ns
        self.told_late = self.start_ns < span.start_ns
        self.end_ns = span.end_ns
        self.response_id = first_text(attributes, shape.response_id) or _id_in_output(attributes)
        self.attributes = attributes if shape.has_messages else NO_ATTRIBUTES
        if shape.spreads_messages:
            self.attributes = as_openinference(attributes)
        self.weight = span.weight if shape.has_messages else SMALL_SPAN_BYTES
        self.counted = shape.may_be_counted and (is_counted(attributes) or COUNTED_MODEL in attributes)


Fact = ToolFact | ModelFact


def _begun_ns(span: SpanData) -> int:
    """When a model call began: OpenLIT writes some spans of streamed replies once those have come (Gemini, Mistral).

    Such a span is shorter than the time that it says the first token took.
    """
    waited = first(span.attributes, span.shape.first_token)
    if type(waited) is not float or not 0.0 < waited < _LONGEST_WAIT_SECONDS:
        return span.start_ns
    return min(span.start_ns, span.end_ns - int(waited * 1e9))


def _id_in_output(attributes: Mapping[str, Any]) -> str:
    """The reply's id, where an instrumentation gives the whole reply instead (OpenInference, MLflow)."""
    output = attributes.get("output.value") or attributes.get("mlflow.spanOutputs")
    if type(output) is str:
        match = _REPLY_ID.match(output)
        if match is None:
            end = output.rfind('"llm_output"')  # LangChain's own form
            match = _LATER_ID.search(output, end) if end >= 0 else None
        if match is not None:
            return match[1]
        if '"llmOutput"' in output:
            return _id_in_message(json_of(output))
    return ""


def _id_in_message(reply: Any) -> str:
    """The reply's id where LangChain.js gives it: on the message, unless that is an id of its own making."""
    for key in ("generations", 0, 0, "message", "kwargs", "id"):
        try:
            reply = reply[key]
        except (IndexError, KeyError, TypeError):
            return ""
    return reply[:_LONGEST_ID] if type(reply) is str and not reply.startswith(_OWN_IDS) else ""


def is_counted(attributes: Mapping[str, Any]) -> bool:
    """Whether turnwatch itself wrote this span, or marked it, for a call it counted."""
    counted = attributes.get(COUNTED)
    return counted is True or counted == "true"


def _is_counted_tool(attributes: Mapping[str, Any], tool: str) -> bool:
    """Whether the span ran inside a counted call of the same tool."""
    inside = attributes.get(COUNTED_TOOL)
    return inside is not None and is_same_tool_name(str(inside), tool)


def is_same_tool_name(one: str, other: str) -> bool:
    """Whether two names are one tool's: some dialects put the agent, plugin or server before it."""
    if one == other:
        return True
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return bool(shorter) and longer.endswith(shorter) and longer[-len(shorter) - 1] in "._-:/ "


def tool_fact(span: SpanData, dialect: Dialect) -> ToolFact:
    """The tool call that this span stands for."""
    attributes, shape = span.attributes, span.shape
    result = result_of(span)
    input_hash = first_text(attributes, shape.input_hash)
    # Set one by one: naming them in the call takes as long again as all the rest of it.
    call = ToolCall(tool_name(span, dialect, result.tool), MISSING if input_hash else arguments_of(span))
    call.input_hash = input_hash or None
    call.call_id = first_text(attributes, shape.call_id) or result.call_id or None
    if result.value is not MISSING:
        call.result = Evidence.of(result.value)
    if result.failed:
        call.outcome = "error"
        call.error_type = result.error_type
    call.started, call.ended = _times(span)
    call.line = span.line
    return ToolFact(span, dialect, call)


def _times(span: SpanData | ModelFact) -> tuple[float | None, float | None]:
    start, end = span.start_ns, span.end_ns
    return start * _NS if start else None, end * _NS if end else None


def tool_name(span: SpanData, dialect: Dialect, in_result: str = "") -> str:
    """The tool's name: an attribute's, the result's, or what is left of the span's own name."""
    if dialect.tool_name_in_result:
        return shortened(in_result or span.name)
    name = first_text(span.attributes, span.shape.tool_name) or shortened(in_result)
    if name:
        return name
    name = shortened(span.name)
    for start in _NAME_STARTS:
        name = name.removeprefix(start)
    for end in _NAME_ENDS:
        if name.endswith(end) and len(name) > len(end):
            return name[: -len(end)].rsplit(".", 1)[-1]
    return name


def model_fact(span: SpanData, dialect: Dialect) -> ModelFact:
    """The model call that this span stands for."""
    attributes, shape = span.attributes, span.shape
    error_type = attributes.get("error.type")
    call = ModelCall(first_text(attributes, shape.model_name))
    call.provider = first_text(attributes, shape.provider)
    call.usage = usage_of(attributes, shape)
    if not call.model and shape.has_usage_object:
        call.model = shortened(str(reply_meta(attributes).get("model") or ""))
    if span.failed or error_type is not None:
        call.outcome = "error"
        call.error_type = None if error_type is None else shortened(str(error_type))
    fact = ModelFact(span, dialect, call)
    call.started, call.ended = _times(fact)
    if dialect.streams_apart and call.ended is not None and span.start_ns == span.end_ns:
        call.started = call.ended - _seconds(attributes.get("duration"))
    return fact


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and 0 <= value < _LONGEST_CALL_SECONDS else 0.0


def agent_name(span: SpanData, dialect: Dialect) -> str:
    """The agent a span names, or an empty text."""
    attributes = span.attributes
    for attribute in span.shape.agent_name:
        value = attributes.get(attribute)
        if value is not None:
            name = unquoted(str(value))
            if name and name not in dialect.wrong_agent_names:
                return shortened(name)
    metadata = attributes.get(METADATA)
    if metadata is not None:
        about = json_of(metadata)
        if isinstance(about, dict) and about.get("lc_agent_name"):
            return shortened(str(about["lc_agent_name"]))
    return ""


def conversation_of(span: SpanData) -> str | None:
    """The conversation a span belongs to, or None."""
    value = first(span.attributes, span.shape.conversation)
    if value is None or value in _NO_CONVERSATION:
        return None
    about = json_of(value)
    if isinstance(about, dict):  # metadata of LangChain's
        value = about.get("thread_id")
        return None if value is None else shortened(str(value))
    return shortened(unquoted(str(value)))


def service_name(span: SpanData) -> str:
    """The service a span comes from; empty when nobody named it."""
    name = shortened(str(span.resource.get("service.name") or ""))
    return "" if name.startswith("unknown_service") else name

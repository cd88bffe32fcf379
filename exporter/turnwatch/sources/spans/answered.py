"""Which results of its tool calls was a model told, by the messages on its span?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from turnwatch.sources.spans.messages import (
    INPUTS,
    MAX_CALLS,
    OPENINFERENCE_IN,
    TRACELOOP_IN,
    members,
    numbered,
    with_ids,
)
from turnwatch.sources.spans.values import MISSING, json_of


@dataclass(slots=True)
class Answered:
    """One tool result that a model was given; the id is empty where the dialect has none."""

    call_id: str
    value: Any
    failed: bool = False


def answered_to(attributes: Mapping[str, Any]) -> list[Answered]:
    """The tool results a model was given, in their order."""
    if not attributes:
        return []
    for name in INPUTS:
        value = attributes.get(name)
        if value:
            results = list(_answered_in(json_of(value)))
            if results:
                return results
    return _answered_flat(attributes)


def _answered_in(value: Any) -> Iterator[Answered]:
    for message in members(value, "messages", "input", "contents"):
        if isinstance(message.get("kwargs"), dict):  # LangChain's own form
            message = message["kwargs"]
        if message.get("type") == "function_call_output":  # OpenAI's Responses
            yield Answered(str(message.get("call_id") or ""), message.get("output", MISSING))
            continue
        if "tool" in (message.get("role"), message.get("type")) and message.get("tool_call_id") is not None:
            result, failed = message.get("content", message.get("parts", MISSING)), message.get("status") == "error"
            yield Answered(str(message["tool_call_id"]), result, failed)
            continue
        parts = list(members(message, "parts", "content"))
        answers = list(filter(None, map(_answer_in_part, parts)))
        yield from answers
        if parts and not answers and message.get("role") == "tool":  # Splunk's: a text as any other, without an id
            yield Answered("", parts)


def _answer_in_part(part: dict[str, Any]) -> Answered | None:
    kind = part.get("type")
    if kind in ("tool_call_response", "tool_result", "tool-result", "tool_response"):
        call_id = str(part.get("id", part.get("tool_use_id", part.get("toolCallId"))) or "")
        failed = part.get("is_error") is True or part.get("isError") is True
        for key in ("response", "result", "content", "output"):
            if key in part:
                return Answered(call_id, part[key], failed)
        return Answered(call_id, MISSING, failed)
    answer = part.get("function_response", part.get("functionResponse"))  # Gemini
    if isinstance(answer, dict):
        return Answered(str(answer.get("id") or ""), answer.get("response", MISSING))
    result = part.get("tool_call_result")  # Haystack
    if isinstance(result, dict):
        origin = result.get("origin")
        call_id = str((origin.get("id") if isinstance(origin, dict) else None) or "")
        return Answered(call_id, result.get("result", MISSING), result.get("error") is True)
    return None


def _answered_flat(attributes: Mapping[str, Any]) -> list[Answered]:
    results: list[Answered] = []
    failed: frozenset[str] | None = None
    unanswered: Iterator[str] = iter(())
    for start, role in numbered(attributes, OPENINFERENCE_IN, "message."):
        if start + "tool_calls.0.tool_call.id" in attributes:
            unanswered = _asked_ids(attributes, start)
        elif role == "tool" or attributes.get(start + "tool_call_id"):
            # Some leave the id out here; results come in the order of the calls.
            call_id = str(attributes.get(start + "tool_call_id") or next(unanswered, ""))
            if failed is None:
                failed = _failed_in_request(attributes.get("input.value"))
            results.append(Answered(call_id, attributes.get(start + "content", MISSING), call_id in failed))
    if results:
        if results[0].call_id:
            return results
        return with_ids(results, _answered_in(json_of(attributes.get("input.value"))))
    return _answered_numbered(attributes)


def _answered_numbered(attributes: Mapping[str, Any]) -> list[Answered]:
    """Results as Traceloop has them."""
    results: list[Answered] = []
    for start, role in numbered(attributes, TRACELOOP_IN):
        if role == "tool":
            call_id = str(attributes.get(start + "tool_call_id") or "")
            results.append(Answered(call_id, attributes.get(start + "content", MISSING)))
    return results


def _asked_ids(attributes: Mapping[str, Any], message: str) -> Iterator[str]:
    for number in range(MAX_CALLS):
        call_id = attributes.get(f"{message}tool_calls.{number}.tool_call.id")
        if call_id is None:
            return
        yield str(call_id)


def _failed_in_request(request: Any) -> frozenset[str]:
    """The calls that failed, by the request itself: Anthropic's says so, and the messages taken out of it do not."""
    if type(request) is not str or '"is_error"' not in request:
        return frozenset()
    return frozenset(answer.call_id for answer in _answered_in(json_of(request)) if answer.failed and answer.call_id)

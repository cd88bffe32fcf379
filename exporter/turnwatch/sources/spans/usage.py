"""Tokens of a model call, under whichever names they go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from turnwatch.core.events import Usage
from turnwatch.sources.spans.dialect import CONVENTIONS
from turnwatch.sources.spans.haystack import reply_meta
from turnwatch.sources.spans.shapes import Shape, shape_of
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.values import first_text, json_of

_AGGREGATED_PREFIX, _PLAIN_PREFIX = CONVENTIONS.usage["aggregated"]
# Within a text of the same JSON a quote is escaped, so that this is a key.
_PRINTED_USAGE: Final = ("usage=CompletionUsage(", '"usage":')
_PRINTED_CACHED: Final = re.compile(r"\bcached_tokens(?:=|': ?|\": ?)(\d+)")
_CREW_TOKENS: Final = re.compile(r"(\w+_tokens)=(\d+)")
# In which a provider's own counts may stand, or Langfuse's form of them.
_OBJECTS: Final = ("langfuse.observation.usage_details", "mlflow.chat.tokenUsage", "usage")
_GEMINI: Final = "gemini"
# As in OTLP. What is larger, as text may be, is no number of tokens, and no float could hold it.
_LARGEST: Final = 2**63 - 1


def _number(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return number if 0 <= number <= _LARGEST else 0


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = attributes.get(name)
        if value is not None:
            return value if type(value) is int and 0 <= value <= _LARGEST else _number(value)
    return None


def usage_of(attributes: Mapping[str, Any], shape: Shape) -> Usage | None:
    """Tokens of a model span of this shape; None when it reports none. Nobody calls a model with no tokens at all."""
    given = _first(attributes, shape.input)
    made = _first(attributes, shape.output)
    if given is None and made is None:
        if not shape.has_usage_object:
            return None
        return _in_object(attributes) or _haystack(attributes) or _genkit(attributes) or _anthropic(attributes)
    if not given and not made:
        return None
    usage = Usage(
        given or 0,
        made or 0,
        (shape.cache_read and _first(attributes, shape.cache_read)) or 0,
        (shape.cache_write and _first(attributes, shape.cache_write)) or 0,
        (shape.reasoning and _first(attributes, shape.reasoning)) or 0,
    )
    if shape.dialect.cache_beside_input:
        usage.input += usage.cache_read + usage.cache_write
    if shape.dialect.thoughts_beside_output:
        usage.output += usage.reasoning
    elif shape.total:
        _add_thoughts(attributes, shape, usage)
    if shape.has_usage_object and not usage.cache_read:
        _langsmith(attributes, usage)
        _printed(attributes, usage)
        _vertex(attributes, usage)
    return usage


def _add_thoughts(attributes: Mapping[str, Any], shape: Shape, usage: Usage) -> None:
    """Thinking tokens of Gemini's, which its API counts in the total alone, and some instrumentations with it.

    Seen in the sources of Traceloop's and OpenInference's for Google's clients and of OpenLIT's for ADK. Nobody else's
    total holds anything that input and output leave out and that is paid for as output.
    """
    left = (_first(attributes, shape.total) or 0) - usage.input - usage.output
    if left > 0 and _GEMINI in first_text(attributes, shape.model_name):
        usage.reasoning = min(usage.reasoning or left, left)
        usage.output += usage.reasoning


def usage_of_agent(span: SpanData) -> Usage | None:
    """The sum an agent span carries, for turns whose model spans report nothing."""
    attributes = span.attributes
    usage = usage_of(attributes, span.shape)
    if usage is not None:
        return usage
    start = len(_AGGREGATED_PREFIX)
    renamed = {
        _PLAIN_PREFIX + name[start:]: value for name, value in attributes.items() if name.startswith(_AGGREGATED_PREFIX)
    }
    if renamed:
        return usage_of(renamed, shape_of(span.scope, renamed))
    crew = attributes.get("crewai.crew.token_usage")
    if crew:
        counts = {name: _number(number) for name, number in _CREW_TOKENS.findall(str(crew))}
        if counts.get("prompt_tokens"):
            return Usage(
                counts["prompt_tokens"], counts.get("completion_tokens", 0), counts.get("cached_prompt_tokens", 0)
            )
    return None


def _in_object(attributes: Mapping[str, Any]) -> Usage | None:
    for name in _OBJECTS:
        counts = json_of(attributes.get(name))
        if isinstance(counts, dict):
            return _of_api(counts) or _langfuse(counts)
    return None


def _langfuse(details: dict[str, Any]) -> Usage | None:
    """Langfuse takes cached tokens out of input and reasoning out of output, and lists them beside."""
    counts = {str(name): _number(value) for name, value in details.items()}
    given = counts.get("input", 0) + sum(n for name, n in counts.items() if name.startswith("input_"))
    made = counts.get("output", 0) + sum(n for name, n in counts.items() if name.startswith("output_"))
    if not given and not made:
        return None
    return Usage(
        given,
        made,
        counts.get("input_cache_read", 0) or counts.get("cache_read_input_tokens", 0),
        counts.get("input_cache_creation", 0) or counts.get("input_cache_write", 0),
        counts.get("output_reasoning", 0),
    )


def _anthropic(attributes: Mapping[str, Any]) -> Usage | None:
    """Counts under the names of Anthropic's API, which leaves cached tokens out of input."""
    read = _first(attributes, ("cache_read_tokens", "cache_read_input_tokens")) or 0
    written = _first(attributes, ("cache_creation_tokens", "cache_creation_input_tokens")) or 0
    given = _number(attributes.get("input_tokens")) + read + written
    made = _number(attributes.get("output_tokens"))
    return Usage(given, made, read, written) if given or made else None


def _langsmith(attributes: Mapping[str, Any], usage: Usage) -> None:
    metadata = json_of(attributes.get("langsmith.metadata.usage_metadata"))
    if metadata is None:
        counted = _in_object(attributes)
        if counted is not None:
            usage.cache_read, usage.cache_write, usage.reasoning = (
                counted.cache_read, counted.cache_write or usage.cache_write, counted.reasoning or usage.reasoning
            )  # fmt: skip
    elif isinstance(metadata, dict):
        given, made = metadata.get("input_token_details"), metadata.get("output_token_details")
        if isinstance(given, dict):
            usage.cache_read = _number(given.get("cache_read"))
            usage.cache_write = _number(given.get("cache_creation"))
        if isinstance(made, dict):
            usage.reasoning = _number(made.get("reasoning"))


def _printed(attributes: Mapping[str, Any], usage: Usage) -> None:
    """Cached tokens of a usage that was printed as it stands: LiteLLM's, or the one in a whole reply."""
    printed = attributes.get("metadata.usage_object")
    if printed is None:
        output = attributes.get("output.value")
        if type(output) is not str:
            return
        start = max(map(output.rfind, _PRINTED_USAGE))
        if start < 0:
            return
        printed = output[start:]
    cached = _PRINTED_CACHED.search(str(printed))
    usage.cache_read = _number(cached[1]) if cached is not None else 0


def _vertex(attributes: Mapping[str, Any], usage: Usage) -> None:
    """Cached and thinking tokens of a reply of Gemini's that ADK for JavaScript counts nowhere else."""
    reply = json_of(attributes.get("gcp.vertex.agent.llm_response"))
    counts = reply.get("usageMetadata") if isinstance(reply, dict) else None
    if isinstance(counts, dict):
        usage.cache_read = _number(counts.get("cachedContentTokenCount"))
        usage.reasoning = _number(counts.get("thoughtsTokenCount"))
        if usage.output == _number(counts.get("candidatesTokenCount")):
            usage.output += usage.reasoning


def _haystack(attributes: Mapping[str, Any]) -> Usage | None:
    usage = reply_meta(attributes).get("usage")
    return _of_api(usage) if isinstance(usage, dict) else None


def _genkit(attributes: Mapping[str, Any]) -> Usage | None:
    """Counts beside the reply, where thinking is in the total alone; the provider's own say what was cached."""
    reply = json_of(attributes.get("genkit:output"))
    counts = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(counts, dict):
        return None
    given, made = _number(counts.get("inputTokens")), _number(counts.get("outputTokens"))
    if not given and not made:
        return None
    thoughts = _number(counts.get("thoughtsTokens"))
    if given + made + thoughts <= _number(counts.get("totalTokens")):
        made += thoughts
    usage = Usage(given, made, _number(counts.get("cachedContentTokens")), 0, thoughts)
    raw = reply.get("raw")
    told = _of_api(raw["usage"]) if isinstance(raw, dict) and isinstance(raw.get("usage"), dict) else None
    if told is not None:
        usage.cache_read = usage.cache_read or told.cache_read
        usage.reasoning = usage.reasoning or told.reasoning
    return usage


def _of_api(usage: dict[str, Any]) -> Usage | None:
    """Counts as a provider's API gives them. Anthropic's has no total, and leaves cached tokens out of input."""
    given = _number(usage.get("prompt_tokens", usage.get("input_tokens")))
    made = _number(usage.get("completion_tokens", usage.get("output_tokens")))
    if not given and not made:
        return None
    cached, written = _number(usage.get("cache_read_input_tokens")), _number(usage.get("cache_creation_input_tokens"))
    if "total_tokens" not in usage:
        given += cached + written
    read = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    wrote = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    return Usage(
        given,
        made,
        cached or (_number(read.get("cached_tokens")) if isinstance(read, dict) else 0),
        written or (_number(read.get("cache_write_tokens")) if isinstance(read, dict) else 0),
        _number(wrote.get("reasoning_tokens")) if isinstance(wrote, dict) else 0,
    )

"""How many tokens a model's reply says it used, and which model said it.

Providers count differently. Everything here comes out in one convention, OpenTelemetry's: input includes what was
read from or written to the prompt cache, output includes reasoning.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from turnwatch.core.events import Usage

Path = tuple[str, ...]

MAX_CHUNKS: Final = 100_000
# A counter is a float: past this it would no longer be exact.
MAX_TOKENS: Final = 2**53


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Where one kind of usage record keeps its numbers.

    Attributes:
        input, output, cache_read, cache_write, reasoning: Paths, the first that holds a number counts.
        input_parts, output_parts: Further numbers that belong to input and output but are counted beside them.
        total: What the provider calls the total: it shows what the other numbers include.
        cache_beside_input: The input number leaves cached tokens out.
    """

    input: tuple[Path, ...]
    output: tuple[Path, ...]
    cache_read: tuple[Path, ...] = ()
    cache_write: tuple[Path, ...] = ()
    reasoning: tuple[Path, ...] = ()
    input_parts: tuple[Path, ...] = ()
    output_parts: tuple[Path, ...] = ()
    total: tuple[Path, ...] = ()
    cache_beside_input: bool = False


_DIALECTS: Final = (
    # OpenTelemetry GenAI attributes, the names of all years, and Traceloop's
    _Dialect(
        input=(("gen_ai.usage.input_tokens",), ("gen_ai.usage.prompt_tokens",)),
        output=(("gen_ai.usage.output_tokens",), ("gen_ai.usage.completion_tokens",)),
        cache_read=(
            ("gen_ai.usage.cache_read.input_tokens",),
            ("gen_ai.usage.cache_read_input_tokens",),
            ("gen_ai.usage.details.cache_read_tokens",),
            ("gen_ai.usage.input_tokens.cached",),
        ),
        cache_write=(
            ("gen_ai.usage.cache_write.input_tokens",),
            ("gen_ai.usage.cache_creation.input_tokens",),
            ("gen_ai.usage.cache_creation_input_tokens",),
            ("gen_ai.usage.details.cache_write_tokens",),
        ),
        reasoning=(
            ("gen_ai.usage.reasoning.output_tokens",),
            ("gen_ai.usage.reasoning_tokens",),
            ("gen_ai.usage.details.reasoning_tokens",),
            ("gen_ai.usage.output_tokens.reasoning",),
        ),
        total=(("gen_ai.usage.total_tokens",), ("llm.usage.total_tokens",)),
    ),
    # OpenInference attributes
    _Dialect(
        input=(("llm.token_count.prompt",),),
        output=(("llm.token_count.completion",),),
        cache_read=(("llm.token_count.prompt_details.cache_read",),),
        cache_write=(("llm.token_count.prompt_details.cache_write",),),
        reasoning=(("llm.token_count.completion_details.reasoning",),),
        total=(("llm.token_count.total",),),
    ),
    # Gemini: prompt_token_count has the cached tokens in it; thoughts and tool prompts stand beside the rest
    _Dialect(
        input=(("prompt_token_count",), ("promptTokenCount",)),
        output=(("candidates_token_count",), ("candidatesTokenCount",)),
        cache_read=(("cached_content_token_count",), ("cachedContentTokenCount",)),
        reasoning=(("thoughts_token_count",), ("thoughtsTokenCount",)),
        input_parts=(("tool_use_prompt_token_count",), ("toolUsePromptTokenCount",)),
        output_parts=(("thoughts_token_count",), ("thoughtsTokenCount",)),
    ),
    # OpenAI chat completions and all who copy them: LiteLLM, DeepSeek, Mistral, Groq, xAI, vLLM
    _Dialect(
        input=(("prompt_tokens",), ("promptTokens",)),
        output=(("completion_tokens",), ("completionTokens",)),
        cache_read=(
            ("prompt_tokens_details", "cached_tokens"),
            ("cache_read_input_tokens",),
            ("prompt_cache_hit_tokens",),
            ("cached_tokens",),
        ),
        cache_write=(
            ("prompt_tokens_details", "cache_creation_tokens"),
            ("prompt_tokens_details", "cache_write_tokens"),
            ("cache_creation_input_tokens",),
        ),
        reasoning=(("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",)),
        total=(("total_tokens",), ("totalTokens",)),
    ),
    # Bedrock Converse, and the metrics that end its streams
    _Dialect(
        input=(("inputTokens",), ("inputTokenCount",)),
        output=(("outputTokens",), ("outputTokenCount",)),
        cache_read=(("cacheReadInputTokens",), ("cacheReadInputTokenCount",)),
        cache_write=(("cacheWriteInputTokens",), ("cacheWriteInputTokenCount",)),
        reasoning=(("reasoningTokens",),),
        total=(("totalTokens",),),
        cache_beside_input=True,
    ),
    # OpenAI Responses, OpenAI Agents, LangChain's usage_metadata, pydantic-ai: input_tokens has the cached ones in it
    _Dialect(
        input=(("input_tokens",),),
        output=(("output_tokens",),),
        cache_read=(
            ("input_tokens_details", "cached_tokens"),
            ("input_token_details", "cache_read"),
            ("cache_read_tokens",),
        ),
        cache_write=(
            ("input_tokens_details", "cache_write_tokens"),
            ("input_token_details", "cache_creation"),
            ("cache_write_tokens",),
        ),
        reasoning=(
            ("output_tokens_details", "reasoning_tokens"),
            ("output_token_details", "reasoning"),
            ("details", "reasoning_tokens"),
            ("reasoning_tokens",),
        ),
        total=(("total_tokens",),),
    ),
    # Ollama
    _Dialect(input=(("prompt_eval_count",),), output=(("eval_count",),)),
    # turnwatch's own reports, and Langfuse's usage_details
    _Dialect(
        input=(("input",),),
        output=(("output",),),
        cache_read=(("cache_read",), ("input_cache_read",), ("input_cached_tokens",)),
        cache_write=(("cache_write",), ("input_cache_creation",)),
        reasoning=(("reasoning",), ("output_reasoning",), ("output_reasoning_tokens",)),
        total=(("total",),),
    ),
)

# Anthropic has OpenAI's field names and the opposite meaning: its input_tokens leave out both cache numbers.
_ANTHROPIC: Final = _Dialect(
    input=(("input_tokens",),),
    output=(("output_tokens",),),
    cache_read=(("cache_read_input_tokens",),),
    cache_write=(("cache_creation_input_tokens",),),
    reasoning=(("output_tokens_details", "thinking_tokens"),),
    cache_beside_input=True,
)

# Where a reply keeps its usage record; () is the reply itself.
_PLACES: Final[tuple[Path, ...]] = (
    ("usage",),
    ("usage_metadata",),
    ("usageMetadata",),
    (),
    ("response", "usage"),  # OpenAI Responses: the event that completes a stream
    ("message", "usage"),  # Anthropic: message_start; LlamaIndex
    ("metadata", "usage"),  # Bedrock: the last event of a stream
    ("amazon-bedrock-invocationMetrics",),
    ("response_metadata", "token_usage"),  # LangChain messages
    ("response_metadata", "usage"),
    ("message", "usage_metadata"),  # LangChain generations
    ("llm_output", "token_usage"),
    ("token_usage",),
    ("meta", "usage"),  # Haystack
    ("usage", "tokens"),  # Cohere
    ("meta", "tokens"),
    ("usage_details",),  # Langfuse
    ("raw", "usage"),  # LlamaIndex
)

_MODEL_PLACES: Final[tuple[Path, ...]] = (
    ("gen_ai.response.model",),
    ("gen_ai.request.model",),
    ("llm.model_name",),
    ("model",),
    ("model_version",),
    ("modelVersion",),
    ("model_name",),
    ("response", "model"),
    ("message", "model"),
    ("response_metadata", "model_name"),
    ("response_metadata", "model"),
    ("llm_output", "model_name"),
    ("meta", "model"),
    ("raw", "model"),
    ("modelId",),
)

_PROVIDER_PLACES: Final[tuple[Path, ...]] = (
    ("gen_ai.provider.name",),
    ("gen_ai.system",),
    ("llm.provider",),
    ("provider_name",),
    ("_hidden_params", "custom_llm_provider"),
    ("response_metadata", "model_provider"),
)

_PACKAGE_PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic", "mistralai": "mistral_ai", "groq": "groq"}


def read_usage(
    reply: object,
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cache_read_tokens: int | None = None,
    cache_write_tokens: int | None = None,
    reasoning_tokens: int | None = None,
) -> Usage | None:
    """The tokens of one model call.

    Args:
        reply: A reply, its usage record, or the last chunk of a stream, as object or mapping: OpenAI chat and
            Responses, Anthropic, Gemini, Bedrock Converse, LiteLLM, LangChain, GenAI span attributes and others.
            A list or tuple is the chunks of one stream: their counts run on, so the largest of each counts.
        input_tokens: All input tokens, cached ones included. What the caller says wins over the reply, here as
            in the other numbers.
        output_tokens: All output tokens, reasoning included.
        cache_read_tokens: The part of input read from the prompt cache.
        cache_write_tokens: The part of input written to the prompt cache.
        reasoning_tokens: The part of output spent on reasoning.

    Returns None when there is nothing to read, and also where every number is zero: gateways that do not know
    report zeros, and an unmeasured call must not look measured. Never raises an Exception.
    """
    try:
        found = _of_chunks(reply) if type(reply) in (list, tuple) else _of_reply(reply)
    except Exception:
        found = None
    said = (input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
    if any(value is not None for value in said):
        base = found or Usage()
        read = (base.input, base.output, base.cache_read, base.cache_write, base.reasoning)
        mine = map(token_count, said)
        found = Usage(*(theirs if own is None else own for own, theirs in zip(mine, read, strict=True)))
    return found if found is not None and (found.input or found.output) else None


def read_model(reply: object) -> str | None:
    """The model that a reply names, or None. Never raises an Exception."""
    return _first_text(reply, _MODEL_PLACES)


def read_provider(reply: object) -> str | None:
    """The provider that a reply names, or that its client library belongs to, or None. Never raises an Exception."""
    named = _first_text(reply, _PROVIDER_PLACES)
    if named is not None:
        return named
    module = getattr(type(reply), "__module__", "")
    return _PACKAGE_PROVIDERS.get(module.partition(".")[0]) if isinstance(module, str) else None


def _of_chunks(chunks: Any) -> Usage | None:
    usages = [usage for chunk in chunks[-MAX_CHUNKS:] if (usage := _of_reply(chunk)) is not None]
    if not usages:
        return None
    return Usage(
        max(usage.input for usage in usages),
        max(usage.output for usage in usages),
        max(usage.cache_read for usage in usages),
        max(usage.cache_write for usage in usages),
        max(usage.reasoning for usage in usages),
    )


def _of_reply(reply: object) -> Usage | None:
    if isinstance(reply, Usage):
        return reply
    if reply is None or isinstance(reply, str | bytes | int | float):
        return None
    for place in _PLACES:
        record = _at(reply, place)
        if record is None:
            continue
        for dialect in _dialects_of(record):
            usage = _read(record, dialect)
            if usage is not None:
                return usage
    return None


def _dialects_of(record: object) -> Iterator[_Dialect]:
    cached = _first(record, _ANTHROPIC.cache_read), _first(record, _ANTHROPIC.cache_write)
    # Frameworks that copy Anthropic's cache names beside an inclusive input also report prompt_tokens or details.
    if cached != (None, None) and _first(record, (("prompt_tokens",),)) is None and not _has_details(record):
        yield _ANTHROPIC
    yield from _DIALECTS


def _has_details(record: object) -> bool:
    return any(_at(record, (name,)) is not None for name in ("input_tokens_details", "input_token_details"))


def _read(record: object, dialect: _Dialect) -> Usage | None:
    input_tokens = _first(record, dialect.input)
    output_tokens = _first(record, dialect.output)
    if input_tokens is None and output_tokens is None:
        return None
    input_tokens = (input_tokens or 0) + (_first(record, dialect.input_parts) or 0)
    output_tokens = (output_tokens or 0) + (_first(record, dialect.output_parts) or 0)
    cache_read = _first(record, dialect.cache_read) or 0
    cache_write = _first(record, dialect.cache_write) or 0
    reasoning = _first(record, dialect.reasoning) or 0
    total = _first(record, dialect.total)
    cached = cache_read + cache_write
    # The total tells what was counted beside what; without one a part that exceeds its whole does.
    plain = input_tokens + output_tokens
    beside_input = cached > input_tokens or (dialect.cache_beside_input and (total is None or total != plain))
    beside_output = reasoning > output_tokens
    if total is not None and total > plain:
        beside_input = beside_input or total in (plain + cached, plain + cached + reasoning)
        beside_output = beside_output or total in (plain + reasoning, plain + cached + reasoning)
    if beside_input:
        input_tokens += cached
    if beside_output:
        output_tokens += reasoning
    return Usage(input_tokens, output_tokens, cache_read, cache_write, reasoning)


def _first(record: object, paths: tuple[Path, ...]) -> int | None:
    for path in paths:
        count = token_count(_at(record, path))
        if count is not None:
            return count
    return None


def _first_text(reply: object, paths: tuple[Path, ...]) -> str | None:
    try:
        for path in paths:
            value = _at(reply, path)
            if isinstance(value, str) and value:
                return str(value)
    except Exception:
        return None
    return None


def _at(obj: Any, path: Path) -> Any:
    for name in path:
        if obj is None:
            return None
        try:
            obj = obj.get(name) if isinstance(obj, Mapping) else getattr(obj, name, None)
        except Exception:
            return None
    return obj


def token_count(value: object) -> int | None:
    """A number of tokens, or None. Bools, negative and absurd numbers are none; stand-ins of mocks are neither."""
    if value is None or isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    number: Any = value  # an int, a float, or one of NumPy's
    # A comparison with NaN is false.
    return int(number) if 0 <= number <= MAX_TOKENS and number == int(number) else None

"""The arguments of a tool call, taken out of whatever the instrumentation wrapped round them."""

from __future__ import annotations

from struct import pack, unpack
from typing import Any, Final

from turnwatch.sources.spans.dialect import CONVENTIONS
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.values import MISSING, is_schema, json_of, parsed

_EVENTS: Final[tuple[tuple[str, str], ...]] = CONVENTIONS.tool["argument_events"]
_EMPTY_IS_MISSING: Final = frozenset(CONVENTIONS.tool["empty_is_missing"])
_MAYBE_SCHEMA: Final = frozenset(CONVENTIONS.tool["maybe_schema"])

_MAX_WRAPPERS: Final = 4
_MAX_DIGESTS: Final = 64
_MAX_EXACT: Final = 2**53  # whole numbers up to this are the same as floats
# An envelope has at least one of these.
_ENVELOPE_KEYS: Final = frozenset({"input_str", "kwargs", "arguments", "params"})
_CALL_KEYS: Final = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
_NAMED_KEYS: Final = (frozenset({"tool_name", "arguments"}), frozenset({"name", "arguments"}))


def arguments_of(span: SpanData) -> Any:
    """The arguments a tool span carries, or MISSING when it carries none or they were taken out."""
    attributes = span.attributes
    for name in span.shape.arguments:
        value = attributes.get(name)
        if value is None:
            continue
        if name in _EMPTY_IS_MISSING and value in ("{}", "[]", ""):
            continue
        if name in _MAYBE_SCHEMA and is_schema(value):
            continue
        value = unwrapped(value)
        return _by_name(value, span) if type(value) is list else value
    if span.events:
        for event_name, attribute in _EVENTS:
            for event in span.events:
                if event.name == event_name:
                    value = event.attributes.get(attribute)
                    if value is not None:
                        return unwrapped(value)
    return MISSING


def _by_name(args: list[Any], span: SpanData) -> Any:
    """Positional arguments under the names in the tool's schema, so that they equal those given by name."""
    for name in _MAYBE_SCHEMA:
        schema = json_of(span.attributes.get(name))
        if is_schema(schema):
            properties = schema.get("properties")
            names = list(properties if isinstance(properties, dict) else schema)
            if len(args) <= len(names):
                return dict(zip(names, args, strict=False))
    return args


def unwrapped(value: object) -> Any:
    """The arguments in a value, whatever envelopes it comes in; MISSING when they were taken out."""
    for _ in range(_MAX_WRAPPERS):
        value = parsed(value)
        if type(value) is not dict or _ENVELOPE_KEYS.isdisjoint(value):
            return value
        inner = _content(value)
        if inner is value:
            return value
        value = inner
    return value


def _content(value: dict[str, Any]) -> Any:
    """What is inside one envelope, or the value itself when it is none.

    LangChain's callbacks give {"input_str", "inputs", "metadata", ...}, of which everything but the inputs
    differs on every call; function wrappers give {"args", "kwargs"}; MCP clients name the tool beside.
    """
    if "input_str" in value and ("inputs" in value or "metadata" in value):
        inputs = value.get("inputs")
        return value["input_str"] if inputs is None else inputs
    keys = value.keys()
    if "kwargs" in keys and keys <= _CALL_KEYS and isinstance(value["kwargs"], dict):
        args = value.get("args")
        if not args:
            return value["kwargs"]
        return {"args": args, **value["kwargs"]} if value["kwargs"] else args
    if keys in _NAMED_KEYS:
        return value["arguments"]
    if value.get("method") == "tools/call" and isinstance(value.get("params"), dict):
        return value["params"].get("arguments", {})
    return value


def digests_of(args: object) -> bytes | None:
    """What stands for arguments too large to keep: a number for each name and each value; None where nothing does.

    Packed, because there is one for every call of every open turn.
    """
    if not isinstance(args, dict) or len(args) > _MAX_DIGESTS:
        return None
    return pack(f"{2 * len(args)}d", *map(hash, args), *map(_digest, args.values()))


def _digest(value: object) -> float:
    if type(value) is str:
        return hash(value)
    if isinstance(value, (int, float)) and -_MAX_EXACT < value < _MAX_EXACT:
        return value  # a function may be given 5.0 for 5
    return hash(repr(value))


def may_be_arguments_of(asked: object, given: object) -> bool:
    """Whether a function may have been given these arguments for a call that asked for those: more may be added."""
    if not isinstance(asked, dict) or not isinstance(given, dict):
        return True
    return all(asked[name] == value for name, value in given.items() if name in asked)


def may_have_digests(asked: bytes | None, given: bytes | None) -> bool:
    """The same of what stands for the arguments."""
    return may_be_arguments_of(_of_digests(asked), _of_digests(given))


def _of_digests(digests: bytes | None) -> dict[float, float] | None:
    if digests is None:
        return None
    numbers = unpack(f"{len(digests) // 8}d", digests)
    half = len(numbers) // 2
    return dict(zip(numbers[:half], numbers[half:], strict=True))

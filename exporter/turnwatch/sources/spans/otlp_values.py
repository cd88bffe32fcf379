"""What stands in the attributes of OTLP's protobuf messages. Needs no protobuf itself."""

from __future__ import annotations

from typing import Any, Final

from turnwatch.sources.spans.values import MAX_DEPTH

_PLAIN_KINDS: Final = frozenset({"int_value", "double_value", "bool_value", "string_value", "bytes_value"})


def attributes_of_map(values: Any) -> dict[str, Any]:
    """Attributes of a protobuf message that has them as a map, as Python objects."""
    attributes: dict[str, Any] = {}
    for key in values:
        value = values[key]
        text = value.string_value  # most are texts or numbers, and asking which costs more than reading both
        if text:
            attributes[key] = text
            continue
        number = value.int_value
        if number:
            attributes[key] = number
            continue
        kind = value.WhichOneof("value")
        if kind is not None:
            attributes[key] = getattr(value, kind) if kind in _PLAIN_KINDS else _value(value, kind, MAX_DEPTH)
    return attributes


def attributes_of_message(pairs: Any) -> dict[str, Any]:
    """Attributes of a protobuf message as Python objects."""
    attributes: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        text = value.string_value  # most are texts, and asking which kind a value is costs more than reading one
        if text:
            attributes[pair.key] = text
            continue
        kind = value.WhichOneof("value")
        if kind is not None:
            attributes[pair.key] = _value(value, kind, MAX_DEPTH)
    return attributes


def message_value(value: Any) -> Any:
    """One value of a protobuf message as a Python object."""
    return _value(value, value.WhichOneof("value"), MAX_DEPTH)


def _value(value: Any, kind: str | None, depth: int) -> Any:
    if kind is None or depth <= 0:
        return None
    if kind == "array_value":
        return [_value(member, member.WhichOneof("value"), depth - 1) for member in value.array_value.values]
    if kind == "kvlist_value":
        return {
            pair.key: _value(pair.value, pair.value.WhichOneof("value"), depth - 1)
            for pair in value.kvlist_value.values
        }
    return getattr(value, kind)

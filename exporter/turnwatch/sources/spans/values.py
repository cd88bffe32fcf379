"""What stands in an attribute: JSON, a Python literal, plain text, or a sign that it was taken out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from turnwatch.core.events import MISSING, Missing
from turnwatch.sources.spans.dialect import CONVENTIONS

# A literal of this length parses in about a tenth of a second; a longer one is compared as text.
_MAX_LITERAL_CHARS: Final = 65_536
# Names and ids are kept for as long as a turn is open, and names become labels.
_LONGEST_NAME: Final = 256
# Attribute values, and JSON in their texts, may be nested without end; deeper than this they are not read.
MAX_DEPTH: Final = 32
_ANYWHERE = CONVENTIONS.redacted_anywhere
_WHOLE = CONVENTIONS.redacted_whole


def first(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The value of the first of these attributes that is there, or None."""
    for name in names:
        value = attributes.get(name)
        if value is not None:
            return value
    return None


def first_text(attributes: Mapping[str, Any], names: Iterable[str]) -> str:
    """The first of these attributes that has text in it, or an empty one."""
    for name in names:
        value = attributes.get(name)
        if value is not None:
            text = value if type(value) is str else str(value)
            if text:
                return (text if text[0] != '"' else unquoted(text))[:_LONGEST_NAME]
    return ""


def shortened(name: str) -> str:
    """A name or id, cut where it is longer than any real one."""
    return name[:_LONGEST_NAME]


def is_redacted(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether a value was taken out. Two values that were taken out are not the same value."""
    if type(value) is str:
        if value in _WHOLE:
            return True
        for marker in _ANYWHERE:  # noqa: SIM110 - a generator costs more than all the looking
            if marker in value:
                return True
        return False
    if depth <= 0:
        return False
    if isinstance(value, dict):
        return any(is_redacted(member, depth - 1) for member in value.values())
    if isinstance(value, (list, tuple)):
        return any(is_redacted(member, depth - 1) for member in value)
    return False


def parsed(value: object) -> Any:
    """A value as the object it is the text of; MISSING when it was taken out; otherwise itself."""
    if type(value) is not str:
        return MISSING if value is None or is_redacted(value) else value
    if is_redacted(value):
        return MISSING
    text = value.strip()
    if not text or text[0] not in '{["(':
        return value
    try:
        return orjson.loads(text)
    except ValueError:
        pass
    return _literal(text, value)


def _literal(text: str, otherwise: Any) -> Any:
    if len(text) > _MAX_LITERAL_CHARS:
        return otherwise
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return otherwise


def json_of(value: object) -> Any:
    """The object a text is the JSON of, a value that is no text itself, or None."""
    if type(value) is not str:
        return value
    if value[:1] not in ("{", "[") and value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(value)
    except ValueError:
        return None


def unquoted(text: str) -> str:
    """A text, or the text that it is the JSON of: some write metadata as JSON."""
    if text[:1] == '"' == text[-1:]:
        try:
            return str(orjson.loads(text))
        except ValueError:
            return text
    return text


def is_schema(value: object) -> bool:
    """Whether an object is the JSON schema of arguments rather than arguments."""
    value = json_of(value)
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("properties"), dict) or "$schema" in value:
        return True
    members = list(value.values())
    return bool(members) and all(isinstance(member, dict) and "type" in member for member in members)


__all__ = ["MISSING", "Missing", "first", "first_text", "is_redacted", "is_schema", "json_of", "parsed"]

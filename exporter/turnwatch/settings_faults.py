"""What is wrong with settings, in words: the key, what it wants, and never the value, which may be the hash key."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from turnwatch.near_names import unknown_key

if TYPE_CHECKING:
    from turnwatch.yaml_file import KeyPath

_TYPE_NAMES: Final = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
    list: "a list",
    tuple: "a list",
    frozenset: "a list",
    set: "a list",
    dict: "a mapping",
}
_BOUNDS: Final = (("ge", "of at least"), ("gt", "greater than"), ("le", "of at most"), ("lt", "less than"))


def faults_in_words(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[KeyPath, str]]:
    """Where each fault is, and a line that names the key and says what is allowed.

    Args:
        error: What pydantic found.
        model: What it was to become.
    """
    for detail in error.errors(include_url=False, include_context=True):
        path = tuple(str(part) for part in detail["loc"])
        yield path, f"{_dotted(detail['loc'])}: {_fault(model, detail, path)}"


def _dotted(loc: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


def _fault(model: type[BaseModel], detail: Any, path: KeyPath) -> str:
    if detail["type"] == "extra_forbidden":
        return unknown_key(path[-1], sorted(_allowed_keys(model, path[:-1])))
    wanted = type_in_words(annotation_of(model, path))
    bound = next((f" {word} {detail['ctx'][key]:g}" for key, word in _BOUNDS if key in detail.get("ctx", {})), "")
    if detail["type"] == "finite_number":
        return "wants a finite number"
    if detail["type"] == "string_pattern_mismatch":
        return "wants printable ASCII characters, without white space round them"
    if bound or detail["type"] == "literal_error":
        return f"wants {wanted}{bound}"
    given = type(detail["input"])
    return f"wants {wanted}, not {_TYPE_NAMES.get(given, given.__name__)}"


def type_in_words(annotation: Any) -> str:
    """An annotation in words."""
    origin = get_origin(annotation)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(annotation)))
    if origin is Union or origin is types.UnionType:
        return " or ".join(type_in_words(part) for part in get_args(annotation) if part is not type(None))
    if origin in (tuple, frozenset, list):
        return f"a list of {_plural(get_args(annotation)[0])}"
    if origin is dict or annotation is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "a mapping"
    return _TYPE_NAMES.get(annotation, "a value of another kind")


def _plural(item: Any) -> str:
    return {str: "texts", int: "whole numbers", float: "numbers"}.get(item, "values")


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The model behind an annotation, Optional or not."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def annotation_of(model: type[BaseModel], path: KeyPath) -> Any:
    """The type of the key at a path; of a named entry (an agent, a tool) the type of the entries."""
    annotation: Any = model
    for part in path:
        if get_origin(annotation) is dict:
            annotation = get_args(annotation)[1]
            continue
        section = section_of(annotation)
        field = section.model_fields.get(part) if section is not None else None
        if field is None:
            # inside a list, or below "alerts"
            items = [item for item in get_args(annotation) if item is not Ellipsis]
            return items[0] if len(items) == 1 else Any
        annotation = field.annotation
    return annotation


def _allowed_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    section = section_of(annotation_of(model, path))
    return list(section.model_fields) if section is not None else []

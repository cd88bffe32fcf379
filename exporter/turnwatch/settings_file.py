"""What is set: by code, by the environment, by a YAML file, in this order."""

from __future__ import annotations

import difflib
import json
import os
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from turnwatch.errors import SettingsError
from turnwatch.settings import Settings
from turnwatch.yaml_file import KeyPath, YamlDocument, parse_yaml_value, read_yaml_file

PREFIX: Final = "TURNWATCH_"
CONFIG_VARIABLE: Final = "TURNWATCH_CONFIG"

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


def load_settings(
    code: Settings | None = None,
    env: Mapping[str, str] | None = None,
    path: str | Path | None = None,
) -> Settings:
    """The settings in force.

    Args:
        code: Set by the program. Only what it sets itself wins over the rest; its defaults do not.
        env: Environment; None for the process's own. ``TURNWATCH_ON_LOOP=stop`` sets a key at the top,
            ``TURNWATCH_BUDGETS__MAX_USD=1.5`` one in a section. A value is YAML, so ``[a, b]`` and
            ``{max_usd: 1.5}`` work too.
        path: YAML or JSON file; None takes TURNWATCH_CONFIG from the environment, where it is set.

    Raises:
        SettingsError: The file cannot be read, or some keys are unknown or have the wrong type. One line for each,
            with file and line or the variable, the key, and what is allowed.
    """
    env = os.environ if env is None else env
    if path is None:
        path = env.get(CONFIG_VARIABLE) or None
    faults: list[str] = []
    in_file = _of_file(path, faults) if path is not None else {}
    in_env = _of_environment(env, faults)
    if faults:
        raise SettingsError("\n".join(faults))
    merged = _merged(in_file, in_env)
    if code is not None:
        merged = _merged(merged, code.model_dump(exclude_unset=True))
    return Settings.model_validate(merged) if merged else Settings()


def environment_names() -> list[str]:
    """Every TURNWATCH_ variable that sets something; <NAME> is a tool's or an agent's."""
    return [CONFIG_VARIABLE, *(PREFIX + "__".join(path).upper() for path in _keys_of(Settings, ()))]


def _of_file(path: str | Path, faults: list[str]) -> dict[str, Any]:
    try:
        document = read_yaml_file(path)
    except SettingsError as error:
        faults += str(error).splitlines()
        return {}
    return _checked(document.data, document, faults)


def _of_environment(env: Mapping[str, str], faults: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # Sections before their keys, so that a key wins over the section's variable.
    for name in sorted(env, key=lambda name: (name.count("__"), name)):
        if not name.startswith(PREFIX) or name == CONFIG_VARIABLE or not env[name]:
            continue
        path = _path_of(name)
        if path is None and _is_set_by_kubernetes(name, env[name]):
            continue
        if path is None:
            faults.append(f"environment: {name} is not a setting; {_nearest_name(name)}")
            continue
        value: Any = env[name]
        if not _is_text(_annotation_of(path)):
            try:
                value = parse_yaml_value(value)
            except SettingsError:
                faults.append(f"environment: {name}: the value is no valid YAML")
                continue
        one = value
        for key in reversed(path):
            one = {key: one}
        found = _merged(found, _checked(one, name, faults))
    return found


# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_A_SERVICE: Final = re.compile(
    r"_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$"
)
_ADDRESS: Final = re.compile(r"(?:tcp|udp|sctp)://")


def _is_set_by_kubernetes(name: str, value: str) -> bool:
    """Whether Kubernetes has set this variable, as it does in every pod beside a Service called turnwatch."""
    if "__" in name:
        return False
    return _OF_A_SERVICE.search(name) is not None or (name.endswith("_PORT") and _ADDRESS.match(value) is not None)


def _nearest_name(name: str) -> str:
    known = {each.removeprefix(PREFIX): each for each in environment_names()}
    near = difflib.get_close_matches(name.removeprefix(PREFIX), known, 1)
    return f"did you mean {known[near[0]]}?" if near else f"names are {PREFIX}<KEY> or {PREFIX}<SECTION>__<KEY>"


def _checked(data: dict[str, Any], source: YamlDocument | str, faults: list[str]) -> dict[str, Any]:
    """What ``data`` sets, with the model's types. Strict, so that "yes" is no bool and true no number."""
    try:
        settings = Settings.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=True):
            path = tuple(str(part) for part in detail["loc"])
            place = source.place(path) if isinstance(source, YamlDocument) else f"environment: {source}"
            faults.append(f"{place}: {_dotted(detail['loc'])}: {_fault(detail, path)}")
        return {}
    return settings.model_dump(exclude_unset=True)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


def _dotted(loc: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


def _fault(detail: Any, path: KeyPath) -> str:
    if detail["type"] == "extra_forbidden":
        allowed = sorted(_allowed_keys(path[:-1]))
        near = difflib.get_close_matches(path[-1], allowed, 1)
        return f"unknown key; allowed are {', '.join(allowed)}" + (f"; did you mean {near[0]}?" if near else "")
    wanted = type_in_words(_annotation_of(path))
    bound = next((f" {word} {detail['ctx'][key]:g}" for key, word in _BOUNDS if key in detail.get("ctx", {})), "")
    if detail["type"] == "finite_number":
        return "wants a finite number"
    if bound or detail["type"] == "literal_error":
        return f"wants {wanted}{bound}"
    # The value itself stays out of the message: it may be the hash key.
    return f"wants {wanted}, not {_TYPE_NAMES.get(type(detail['input']), 'that')}"


_BOUNDS: Final = (("ge", "of at least"), ("gt", "greater than"), ("le", "of at most"), ("lt", "less than"))


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


def _keys_of(model: type[BaseModel], above: KeyPath) -> Iterator[KeyPath]:
    for name, field in model.model_fields.items():
        here = (*above, name)
        yield here
        annotation = field.annotation
        if get_origin(annotation) is dict:
            here, annotation = (*here, "<name>"), get_args(annotation)[1]
        section = section_of(annotation)
        if section is not None:
            yield from _keys_of(section, here)


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The model behind an annotation, Optional or not."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)


def _annotation_of(path: KeyPath) -> Any:
    """The type of the key at a path; of a named entry (an agent, a tool) the type of the entries."""
    annotation: Any = Settings
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


def _allowed_keys(path: KeyPath) -> list[str]:
    section = section_of(_annotation_of(path)) if path else Settings
    return list(section.model_fields) if section is not None else []


def _is_text(annotation: Any) -> bool:
    """Whether a variable's value is taken as it is: a hash key 0123 is not a number."""
    return annotation is str or (str in get_args(annotation) and get_origin(annotation) in (Union, types.UnionType))


def _path_of(name: str) -> KeyPath | None:
    """TURNWATCH_AGENTS__coder__BUDGETS__MAX_USD -> agents, coder, budgets, max_usd; None where there is no such key."""
    path: list[str] = []
    annotation: Any = Settings
    for part in name.removeprefix(PREFIX).split("__"):
        if not part:
            return None
        if get_origin(annotation) is dict:
            # Many shells and platforms want variables in capitals; agents and tools rarely are.
            path.append(part.lower() if part.isupper() else part)
            annotation = get_args(annotation)[1]
            continue
        section = section_of(annotation)
        field = section.model_fields.get(part.lower()) if section is not None else None
        if field is None:
            return None
        path.append(part.lower())
        annotation = field.annotation
    return tuple(path)

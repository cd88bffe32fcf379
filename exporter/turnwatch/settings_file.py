"""What is set: by code, by the environment, by a YAML file, in this order."""

from __future__ import annotations

import json
import os
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from turnwatch.errors import SettingsError
from turnwatch.near_names import did_you_mean
from turnwatch.settings import Settings
from turnwatch.settings_faults import annotation_of, faults_in_words, section_of

if TYPE_CHECKING:  # where nothing is set, nothing needs YAML
    from turnwatch.yaml_file import KeyPath, YamlDocument

PREFIX: Final = "TURNWATCH_"
CONFIG_VARIABLE: Final = "TURNWATCH_CONFIG"
_FORM_OF_NAMES: Final = f"names are {PREFIX}<KEY> or {PREFIX}<SECTION>__<KEY>"
_SWITCHES: Final = {"0": False, "1": True}
"""How variables are turned on and off in most programs; in a file, 0 and 1 are numbers."""


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
    settings, faults = settings_that_hold(code, env, path)
    if faults:
        raise SettingsError("\n".join(faults))
    return settings


def settings_that_hold(
    code: Settings | None = None,
    env: Mapping[str, str] | None = None,
    path: str | Path | None = None,
) -> tuple[Settings, list[str]]:
    """The settings that are right, and a line for each that is wrong and left out. See ``load_settings``.

    For an agent that is to start all the same: one misspelt key must not switch its limits off.
    """
    env = os.environ if env is None else env
    if path is None:
        path = env.get(CONFIG_VARIABLE) or None
    faults: list[str] = []
    in_file = _of_file(path, faults) if path is not None else {}
    in_env = _of_environment(env, faults)
    merged = _merged(in_file, in_env)
    if code is not None:
        merged = _merged(merged, code.model_dump(exclude_unset=True))
    return Settings.model_validate(merged) if merged else Settings(), faults


def environment_names() -> list[str]:
    """Every TURNWATCH_ variable that sets something; <NAME> is a tool's or an agent's."""
    return [CONFIG_VARIABLE, *(PREFIX + "__".join(path).upper() for path in _keys_of(Settings, ()))]


def _of_file(path: str | Path, faults: list[str]) -> dict[str, Any]:
    from turnwatch.yaml_file import read_yaml_file

    try:
        document = read_yaml_file(path, faults)
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
            hint = did_you_mean(name, environment_names(), PREFIX) or _FORM_OF_NAMES
            faults.append(f"environment: {name} is not a setting; {hint}")
            continue
        value: Any = env[name]
        annotation = annotation_of(Settings, path)
        if value in _SWITCHES and bool in (annotation, *get_args(annotation)):
            value = _SWITCHES[value]
        elif not _is_text(annotation):
            from turnwatch.yaml_file import parse_yaml_value

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


def _checked(data: dict[str, Any], source: YamlDocument | str, faults: list[str]) -> dict[str, Any]:
    """What ``data`` sets, with the model's types. Strict, so that "yes" is no bool and true no number.

    What is wrong is named in ``faults`` and taken out of ``data``.
    """
    try:
        settings = _strictly(data)
    except ValidationError as error:
        for path, fault in faults_in_words(error, Settings):
            place = f"environment: {source}" if isinstance(source, str) else source.place(path)
            faults.append(f"{place}: {fault}")
            _take_out(data, path)
        settings = _strictly(data)
    return settings.model_dump(exclude_unset=True)


def _strictly(data: dict[str, Any]) -> Settings:
    return Settings.model_validate_json(json.dumps(data), strict=True)


def _take_out(data: dict[str, Any], path: KeyPath) -> None:
    """Take out the key at this path. Of a list the whole: one that is an item short is one that nobody wrote."""
    node = data
    for key in path[:-1]:
        below = node.get(key)
        if not isinstance(below, dict):
            node.pop(key, None)
            return
        node = below
    node.pop(path[-1], None)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


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

"""What a settings file changes in the pack's ``_config``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from turnwatch.errors import SettingsError
from turnwatch.near_names import unknown_key
from turnwatch.settings import Detect, Settings

_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
_DURATION: Final = (re.compile(r"[1-9][0-9]*[smhdw]"), "a number and a unit, such as 90s or 5m")
_BASE_URL: Final = (re.compile(r"https?://\S*[^\s/]"), "an http:// or https:// address without / at its end")
_NAMESPACE: Final = (re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?"), "the name of a namespace, or ''")
_FORMS: Final = {
    "window": _DURATION,
    "evaluationInterval": (re.compile(r"([1-9][0-9]*[smhdw])?"), "a number and a unit, such as 15s, or ''"),
    "keepFiringFor": _DURATION,
    "targetDownFor": _DURATION,
    "runbookBaseUrl": _BASE_URL,
    "dashboardBaseUrl": _BASE_URL,
    "seriesPalette": (
        re.compile(r"by-size|palette-[a-z0-9-]+"),
        "by-size, or one of Grafana's palettes, such as palette-colorblind",
    ),
    "namespace": _NAMESPACE,
    "alertmanagerNamespace": _NAMESPACE,
    "dashboardNamespace": _NAMESPACE,
    "unknownResultSeverity": (re.compile("critical|warning|info"), "critical, warning or info"),
    "selector": (
        re.compile(rf'({_LABEL}\s*(=|!=|=~|!~)\s*"([^"\\]|\\.)*"(\s*,\s*|$))*'),
        'label matchers, such as job="agents", cluster=~"eu-.+"',
    ),
}
"""Text that must have a form, and the form in words."""
_A_LABEL: Final = re.compile(_LABEL)
_KUBERNETES_LABEL: Final = re.compile(r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)
_KUBERNETES_VALUE: Final = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_OF_KUBERNETES: Final = frozenset({"labels", "dashboardLabels"})
"""Mappings whose keys are the user's own."""
_SHARES: Final = frozenset({"toolErrorShare", "modelErrorShare", "unseenShare", "queueRatio"})
"""Numbers that are parts of a whole."""
_NO_SHARE: Final = "wants a share, from 0 to 1"
_ALSO_THE_EXPORTERS: Final = {"iterations": "iteration_threshold", "identicalCalls": "max_identical_calls"}
"""Thresholds that the exporter counts by, by their name in its settings."""
_ONE_OR_TWO: Final = {"warning": 0, "critical": 0}
"""A threshold of an agent or a tool: these, or a number for the warning one."""


class ConfigKeyError(SettingsError):
    """A key is not one of the pack's ``_config``, or its value is of another kind.

    Attributes:
        path: The key, as it stands in a settings file.
    """

    def __init__(self, path: tuple[str, ...], fault: str) -> None:
        super().__init__(f"{'.'.join(path)}: {fault}")
        self.path = path


def overlay_of(settings: Settings) -> dict[str, Any]:
    """Return the ``_config`` keys that ``settings`` set.

    ``detect``, ``agents`` and ``tools`` are read the way the exporter reads them; ``alerts`` is ``_config`` itself
    and wins over them.
    """
    detect, standard = settings.detect, Detect()
    overlay: dict[str, Any] = {}
    if detect.window_seconds != standard.window_seconds:
        overlay["window"] = f"{max(1, round(detect.window_seconds))}s"
    thresholds: dict[str, Any] = {}
    if detect.max_identical_calls != standard.max_identical_calls:
        thresholds["identicalCalls"] = detect.max_identical_calls
    if detect.iteration_threshold != standard.iteration_threshold:
        thresholds["iterations"] = {"warning": detect.iteration_threshold}
    agents = {
        name: _without_none(iterations=agent.iteration_threshold, identicalCalls=agent.max_identical_calls)
        for name, agent in settings.agents.items()
    }
    tools = {
        name: _without_none(polling=tool.polling, identicalCalls=tool.max_identical_calls)
        for name, tool in settings.tools.overrides.items()
    }
    for key, value in (("thresholds", thresholds), ("agents", agents), ("tools", tools)):
        if present := {name: entry for name, entry in value.items() if entry != {}}:
            overlay[key] = present
    return _merged(overlay, settings.alerts)


def apart_from_the_exporter(settings: Settings) -> Iterator[str]:
    """Say which numbers below ``alerts`` move an alert away from what the exporter counts by, one line each."""
    alerts, detect = settings.alerts, settings.detect
    sections: list[tuple[str, Any, str, Any]] = [("thresholds", alerts.get("thresholds", {}), "detect", detect)]
    sections += [
        (f"{kind}.{name}", own, f"{place}.{name}", given.get(name))
        for kind, place, given in (
            ("agents", "agents", settings.agents),
            ("tools", "tools.overrides", settings.tools.overrides),
        )
        for name, own in alerts.get(kind, {}).items()
    ]
    for here, own, place, given in sections:
        for key, name in _ALSO_THE_EXPORTERS.items():
            number = own.get(key)
            number = number.get("warning") if isinstance(number, Mapping) else number
            present = getattr(given, name, None) or getattr(detect, name)
            if number is not None and number != present:
                yield (
                    f"alerts.{here}.{key}: {number} moves the alert only; the exporter counts from {present} on. "
                    f"{place}.{name} moves both"
                )


def checked(overlay: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``overlay`` with single numbers written out as warning thresholds.

    Args:
        overlay: Keys of ``_config``, nested as there.
        defaults: The pack's whole ``_config``.

    Raises:
        ConfigKeyError: A key is not one of ``_config``, or its value is of another kind.
    """
    thresholds = defaults["thresholds"]
    free: dict[str, dict[str, Any]] = {
        "agents": {name: _ONE_OR_TWO if isinstance(each, Mapping) else 0 for name, each in thresholds.items()},
        "tools": {"identicalCalls": 0, "toolErrorShare": _ONE_OR_TWO, "polling": False},
    }
    result: dict[str, Any] = {}
    for key, value in overlay.items():
        path = ("alerts", key)
        if key in free:
            names = _object(value, path)
            result[key] = {name: _section(entry, free[key], (*path, name)) for name, entry in names.items()}
        else:
            result.update(_section({key: value}, defaults, ("alerts",)))
    for name, value in result.get("thresholds", {}).items():
        if isinstance(thresholds[name], dict) and not isinstance(value, dict):
            result["thresholds"][name] = {"warning": value}
    return result


def as_jsonnet(value: object) -> str:
    """Return ``value`` as Jsonnet in which every object is laid over what is there, not put in its place."""
    if isinstance(value, Mapping):
        fields = (
            f"{json.dumps(key)}{'+' if isinstance(entry, Mapping) else ''}: {as_jsonnet(entry)}"
            for key, entry in value.items()
        )
        return "{" + ", ".join(fields) + "}"
    return json.dumps(value)


def _section(value: object, known: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    entries = _object(value, path)
    for key, entry in entries.items():
        here = (*path, key)
        if key not in known:
            raise ConfigKeyError(here, unknown_key(str(key), sorted(known)))
        if key in _OF_KUBERNETES:
            _kubernetes_labels(entry, here)
        elif isinstance(entry, Mapping) and isinstance(known[key], Mapping):
            _section(entry, known[key], here)
            if key in _SHARES and any(number > 1 for number in entry.values()):
                raise ConfigKeyError(here, _NO_SHARE)
        elif not _is_same_kind(entry, known[key]):
            raise ConfigKeyError(here, f"wants {_FORMS[key][1] if key in _FORMS else _kind(known[key])}")
        elif key in _SHARES and entry > 1:
            raise ConfigKeyError(here, _NO_SHARE)
        elif key in _FORMS and not _FORMS[key][0].fullmatch(str(entry)):
            raise ConfigKeyError(here, f"wants {_FORMS[key][1]}")
        elif isinstance(entry, list) and not all(isinstance(name, str) and _A_LABEL.fullmatch(name) for name in entry):
            raise ConfigKeyError(here, "wants names of labels: letters, digits and _")
    warning, critical = entries.get("warning"), entries.get("critical")
    if _is_number(warning) and _is_number(critical) and critical < warning:
        raise ConfigKeyError((*path, "critical"), "is below its warning")
    return dict(entries)


def _kubernetes_labels(value: object, path: tuple[str, ...]) -> None:
    for name, text in _object(value, path).items():
        if not _KUBERNETES_LABEL.fullmatch(str(name)):
            raise ConfigKeyError((*path, str(name)), "is no label of Kubernetes")
        if not isinstance(text, str) or not _KUBERNETES_VALUE.fullmatch(text):
            raise ConfigKeyError((*path, str(name)), "wants text, in quotes where YAML takes it for something else")


def _object(value: object, path: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigKeyError(path, "wants a mapping")
    return value


def _is_same_kind(value: object, known: object) -> bool:
    if isinstance(known, bool):
        return isinstance(value, bool)
    if isinstance(known, (int, float)):
        return _is_number(value)
    if isinstance(known, Mapping):
        return _is_number(value) and "warning" in known
    return isinstance(value, type(known))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


def _kind(known: object) -> str:
    names = {bool: "true or false", int: "a number from 0", float: "a number from 0", str: "text", list: "a list"}
    return names.get(type(known), "a mapping or a number from 0")


def _without_none(**entries: object) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value is not None}


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged

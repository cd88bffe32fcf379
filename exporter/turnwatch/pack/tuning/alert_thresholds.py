"""The thresholds in force: the pack's own, with what the settings say of single agents and tools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from turnwatch.pack.moved_threshold import moved_with
from turnwatch.pack.overlay import overlay_of
from turnwatch.pack.render import whole_config
from turnwatch.settings import Settings


class AlertThresholds:
    """The pack's thresholds under some settings.

    Raises:
        MissingExtraError: The ``jsonnet`` package is missing.
        SettingsError: A key below ``alerts`` is unknown or its value of the wrong kind.
    """

    def __init__(self, settings: Settings) -> None:
        self._config: Mapping[str, Any] = whole_config(overlay_of(settings))

    def pages(self, key: str) -> bool:
        """Whether this key has a critical threshold, too."""
        return isinstance(self._config["thresholds"][key], Mapping)

    def of_agent(self, key: str, agent: str, severity: str = "warning") -> float:
        """The threshold of this key and severity for this agent, or the only one."""
        standard = self._config["thresholds"][key]
        own = self._config["agents"].get(agent, {})
        threshold = own.get(key, standard)
        if key == "conversationModelCalls" and key not in own and "iterations" in own:
            # Goes in proportion, as in promql.libsonnet.
            iterations = _warning(self._config["thresholds"]["iterations"])
            threshold = math.ceil(_warning(standard) * _warning(own["iterations"], iterations) / iterations)
        return _of(key, threshold, standard, severity)

    def of_tool(self, key: str, tool: str, severity: str = "warning") -> float:
        """The threshold of this key and severity for this tool, or the only one."""
        standard = self._config["thresholds"][key]
        return _of(key, self._config["tools"].get(tool, {}).get(key, standard), standard, severity)


def _warning(threshold: Any, standard: float = 0.0) -> float:
    return float(threshold.get("warning", standard) if isinstance(threshold, Mapping) else threshold)


def _of(key: str, threshold: Any, standard: Any, severity: str) -> float:
    """A threshold as promql.libsonnet reads it: what it does not give moves with what it gives."""
    given = threshold if isinstance(threshold, Mapping) else {"warning": threshold}
    if severity in given:
        return float(given[severity])
    if severity == "warning" or not isinstance(standard, Mapping):
        return _warning(given, _warning(standard))
    return moved_with(key, standard, given["warning"])

"""The thresholds in force: the pack's own, with what the settings say of single agents and tools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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

    def of_agent(self, key: str, agent: str) -> float:
        """The warning threshold of this key for this agent, or the only one."""
        standard = _warning(self._config["thresholds"][key])
        own = self._config["agents"].get(agent, {})
        if key in own:
            return _warning(own[key], standard)
        if key == "conversationModelCalls" and "iterations" in own:  # goes in proportion, as in promql.libsonnet
            iterations = _warning(self._config["thresholds"]["iterations"])
            return math.ceil(standard * _warning(own["iterations"], iterations) / iterations)
        return standard

    def of_tool(self, key: str, tool: str, severity: str = "warning") -> float:
        """The threshold of this key and severity for this tool, or the only one."""
        standard = self._config["thresholds"][key]
        return _of(self._config["tools"].get(tool, {}).get(key, standard), standard, severity)


def _warning(threshold: Any, standard: float = 0.0) -> float:
    return float(threshold.get("warning", standard) if isinstance(threshold, Mapping) else threshold)


def _of(threshold: Any, standard: Any, severity: str) -> float:
    """A threshold as promql.libsonnet reads it: what it does not give moves with what it gives."""
    if isinstance(threshold, Mapping) and severity in threshold:
        return float(threshold[severity])
    if severity == "warning" or not isinstance(standard, Mapping):
        return _warning(threshold, _warning(standard))
    share = float(standard[severity]) / _warning(standard)
    return _warning(threshold, _warning(standard)) * share

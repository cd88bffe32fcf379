"""What a critical threshold is where a configuration gives only the warning one, as promql.libsonnet has it."""

from __future__ import annotations

from collections.abc import Mapping


def moved_with(key: str, standard: Mapping[str, float], warning: float) -> float:
    """Return the critical threshold that goes with this warning one.

    Args:
        key: The threshold's name in ``_config.thresholds``.
        standard: Everybody's ``warning`` and ``critical``.
        warning: The one given.
    """
    if key == "iterations":
        return max(standard["critical"], 3 * warning)
    if key.endswith("Share"):
        if standard["warning"] >= 1:
            return 1.0
        return 1 - (1 - warning) * (1 - standard["critical"]) / (1 - standard["warning"])
    return warning * standard["critical"] / standard["warning"]

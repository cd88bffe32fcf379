"""The alerts as recording rules: Prometheus evaluates no alert in the past, but promtool does with recording rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from turnwatch.pack.render import RULES_FILE, as_yaml
from turnwatch.pack.yaml_text import value_of

_DURATION: Final = re.compile(r"(\d+)([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
# How often within its pending time an alert's condition is looked at.
_LOOKS: Final = 6


def past_alerts(files: Mapping[str, str]) -> dict[str, str]:
    """Return the rules for ``promtool tsdb create-blocks-from rules``: each alert records ``ALERTS``, as firing.

    Dashboards read that series. ``keep_firing_for`` is left out: it only delays an alert's end.
    """
    groups = [_group(group) for group in value_of(files[RULES_FILE])["groups"]]
    return {"history/turnwatch.alerts.yaml": as_yaml({"groups": groups})}


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    # Without an interval of its own, so that --eval-interval says how often: a year by the minute takes long.
    rules = [_recorded(rule) if "alert" in rule else rule for rule in group["rules"]]
    return {"name": group["name"], "rules": rules}


def _recorded(rule: Mapping[str, Any]) -> dict[str, Any]:
    expr = rule["expr"].rstrip("\n")
    if "for" in rule:
        expr = f"count_over_time((\n{expr}\n)[{rule['for']}:{_step(rule['for'])}s]) >= {_LOOKS}"
    labels = {"alertname": rule["alert"], "alertstate": "firing", **rule["labels"]}
    return {"record": "ALERTS", "expr": f"clamp((\n{expr}\n), 1, 1)", "labels": labels}


def _step(duration: str) -> int:
    found = _DURATION.fullmatch(duration)
    assert found is not None
    return int(found[1]) * _SECONDS[found[2]] // _LOOKS

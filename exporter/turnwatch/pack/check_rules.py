"""Checks of rules that promtool does not make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from turnwatch.pack.queries import faults_of, literal_bucket_bounds

SEVERITIES: Final = frozenset({"critical", "warning", "info"})
ANNOTATIONS: Final = ("summary", "description", "runbook_url", "dashboard_url")
MAX_RULES_OF_GROUP: Final = 20
_RECORD_NAME: Final = re.compile(r"[a-z_]+:[a-z_]+:[a-z0-9_]+")
_ALERT_NAME: Final = re.compile(r"Agent[A-Z][A-Za-z]{0,34}")


def rule_faults(document: Mapping[str, Any], recorded_elsewhere: frozenset[str] = frozenset()) -> list[str]:
    """Return what is wrong with a rule file, one line each.

    Args:
        document: The file.
        recorded_elsewhere: What rules of other files record.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
    """
    groups = document.get("groups") or []
    rules = [rule for group in groups for rule in group.get("rules") or []]
    recorded = recorded_elsewhere.union(rule["record"] for rule in rules if "record" in rule)
    faults = [
        f"group {group.get('name')}: {len(group['rules'])} rules, more than {MAX_RULES_OF_GROUP}"
        for group in groups
        if len(group.get("rules") or []) > MAX_RULES_OF_GROUP
    ]
    for rule in rules:
        name = rule.get("alert") or rule.get("record")
        of_rule = faults_of(str(rule.get("expr", "")), recorded=recorded)
        if not of_rule and literal_bucket_bounds(rule["expr"]):
            of_rule.append('matches a literal le; write le=~"8(\\\\.0)?"')
        if "alert" in rule:
            of_rule += _alert_faults(rule)
        elif not _RECORD_NAME.fullmatch(str(name)):
            of_rule.append("the name is not level:metric:operations")
        faults += [f"{name}: {fault}" for fault in of_rule]
    return faults


def _alert_faults(rule: Mapping[str, Any]) -> list[str]:
    faults = []
    if not _ALERT_NAME.fullmatch(rule["alert"]):
        faults.append("the name is not CamelCase, does not start with Agent or is longer than 40 characters")
    if rule.get("labels", {}).get("severity") not in SEVERITIES:
        faults.append(f"severity is not one of {', '.join(sorted(SEVERITIES))}")
    annotations = rule.get("annotations", {})
    faults += [f"annotation {name} is missing" for name in ANNOTATIONS if not annotations.get(name)]
    summary = annotations.get("summary", "")
    if "{{" in summary:
        faults.append("the summary is templated, so a group of alerts has none in common")
    if not summary.endswith("."):
        faults.append("the summary does not end with a full stop")
    if "{{" not in annotations.get("description", "{{"):
        faults.append("the description says nothing of the alert's own labels or value")
    return faults

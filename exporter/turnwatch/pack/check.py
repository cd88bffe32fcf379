"""Checks a folder of rendered pack files: the servers' own checkers first, then what they do not see."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from turnwatch.metrics.catalogue import BY_NAME
from turnwatch.pack.check_dashboards import dashboard_faults, panels_of
from turnwatch.pack.check_rules import rule_faults
from turnwatch.pack.check_runbooks import runbook_faults
from turnwatch.pack.queries import QueryError, metric_behind, metrics_of
from turnwatch.pack.render import ALERTMANAGER_FILE, RULES_FILE

UNCHARTED: Final = frozenset[str]()
"""Metrics that no rule and no panel uses, on purpose."""

_SECONDS: Final = 60


def pack_faults(folder: Path) -> list[str]:
    """Return what is wrong with the pack in ``folder``, one line each.

    Args:
        folder: Where ``turnwatch pack render --out`` wrote to.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
        FileNotFoundError: There is no rule file.
    """
    rules = yaml.safe_load((folder / RULES_FILE).read_text(encoding="utf-8"))
    every_rule = [rule for group in rules["groups"] for rule in group["rules"]]
    recorded = frozenset(rule["record"] for rule in every_rule if "record" in rule)
    dashboards = {
        path: json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "dashboards").glob("*.json"))
    }
    runbooks = {path.stem: path.read_text(encoding="utf-8") for path in sorted((folder / "runbooks").glob("*.md"))}

    faults = list(_said_by_servers(folder))
    faults += [f"{RULES_FILE}: {fault}" for fault in rule_faults(rules)]
    for path, dashboard in dashboards.items():
        faults += [f"dashboards/{path.name}: {fault}" for fault in dashboard_faults(dashboard, recorded=recorded)]
    faults += _link_faults(every_rule, {dashboard.get("uid") for dashboard in dashboards.values()})
    faults += [
        f"runbooks: {fault}"
        for fault in runbook_faults(runbooks, {rule["alert"] for rule in every_rule if "alert" in rule})
    ]
    return faults


def unused_metrics(folder: Path) -> set[str]:
    """Return the metrics of the catalogue that no rule and no panel in ``folder`` uses.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
    """
    exprs = [
        rule["expr"]
        for group in yaml.safe_load((folder / RULES_FILE).read_text("utf-8"))["groups"]
        for rule in group["rules"]
    ]
    for path in (folder / "dashboards").glob("*.json"):
        for panel in panels_of(json.loads(path.read_text(encoding="utf-8"))):
            exprs += [target["expr"] for target in panel.get("targets", [])]
    used: set[str] = set()
    for expr in exprs:
        try:
            used |= {metric.name for series in metrics_of(expr) if (metric := metric_behind(series))}
        except QueryError:
            continue
    return BY_NAME.keys() - used


def _link_faults(rules: list[dict[str, Any]], uids: set[str]) -> Iterator[str]:
    for rule in rules:
        link = rule.get("annotations", {}).get("dashboard_url", "")
        uid = link.partition("?")[0].rpartition("/")[2]
        if link and uid not in uids:
            yield f"{RULES_FILE}: {rule['alert']}: there is no dashboard {uid}"


def _said_by_servers(folder: Path) -> Iterator[str]:
    for command, arguments, file in (
        ("promtool", ("check", "rules", "--lint=all", "--lint-fatal"), RULES_FILE),
        ("amtool", ("check-config",), ALERTMANAGER_FILE),
    ):
        if not shutil.which(command) or not (folder / file).is_file():
            continue
        answer = subprocess.run(
            [command, *arguments, str(folder / file)], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if answer.returncode != 0:
            yield f"{file}: {command} says: {(answer.stdout + answer.stderr).strip()}"

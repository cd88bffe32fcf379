"""Checks a folder of rendered pack files: the servers' own checkers first, then what they do not see."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from turnwatch.core.printable import many
from turnwatch.metrics.catalogue import BY_NAME
from turnwatch.pack.check_dashboards import dashboard_faults, panels_of
from turnwatch.pack.check_forms import form_faults, form_files
from turnwatch.pack.check_rules import rule_faults
from turnwatch.pack.check_runbooks import runbook_faults
from turnwatch.pack.check_schema import alert_schema_faults, schema_faults
from turnwatch.pack.home import NoPackError
from turnwatch.pack.queries import QueryError, metric_behind, metrics_of
from turnwatch.pack.render import ALERTMANAGER_FILE, GRAFANA_ALERTS_FILE, RULES_FILE
from turnwatch.pack.yaml_text import value_of

UNCHARTED: Final = frozenset[str]()
"""Metrics that no rule and no panel uses, on purpose."""

_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class _Pack:
    """The files of a pack, as far as they can be read."""

    rules: Mapping[str, Any]
    grafana_alerts: Mapping[str, Any]
    dashboards: Mapping[str, Mapping[str, Any]]
    runbooks: Mapping[str, str]
    unreadable: list[str]

    @property
    def every_rule(self) -> list[Mapping[str, Any]]:
        return [rule for group in self.rules.get("groups") or [] for rule in group.get("rules") or []]

    @property
    def recorded(self) -> frozenset[str]:
        return frozenset(rule["record"] for rule in self.every_rule if "record" in rule)


def pack_faults(folder: Path, *, grafana_schemas: Path | None = None) -> list[str]:
    """Return what is wrong with the pack in ``folder``, one line each.

    Args:
        folder: Where ``turnwatch pack render --out`` wrote to.
        grafana_schemas: Folder of Grafana's JSON schemas, to check dashboards against them too.

    Raises:
        MissingExtraError: A package that checking needs is missing.
        NoPackError: There is no rule file, or no schema.
    """
    pack = _read(folder)
    faults = list(_said_by_servers(folder)) + pack.unreadable
    faults += [f"{RULES_FILE}: {fault}" for fault in rule_faults(pack.rules)]
    for name, dashboard in pack.dashboards.items():
        of_dashboard = dashboard_faults(dashboard, recorded=pack.recorded)
        if grafana_schemas is not None:
            of_dashboard += schema_faults(dashboard, grafana_schemas)
        faults += [f"dashboards/{name}: {fault}" for fault in of_dashboard]
    if grafana_schemas is not None and pack.grafana_alerts:
        of_alerts = alert_schema_faults(pack.grafana_alerts, grafana_schemas)
        faults += [f"{GRAFANA_ALERTS_FILE}: {fault}" for fault in of_alerts]
    faults += form_faults(folder, pack.recorded)
    faults += _link_faults(pack.every_rule, {dashboard.get("uid") for dashboard in pack.dashboards.values()})
    alerts = {rule["alert"] for rule in pack.every_rule if "alert" in rule}
    faults += [f"runbooks: {fault}" for fault in runbook_faults(pack.runbooks, alerts)]
    return faults


def extent(folder: Path) -> str:
    """Return in words what ``pack_faults`` looks at: "26 rules, 6 dashboards".

    Raises:
        NoPackError: There is no rule file.
    """
    pack = _read(folder)
    forms = len(form_files(folder))
    in_forms = f", {many(forms, 'rule file')} for other systems" if forms else ""
    return f"{many(len(pack.every_rule), 'rule')}, {many(len(pack.dashboards), 'dashboard')}{in_forms}"


def unused_metrics(folder: Path) -> set[str]:
    """Return the metrics of the catalogue that no rule and no panel in ``folder`` uses.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
        NoPackError: There is no rule file.
    """
    pack = _read(folder)
    exprs = [rule["expr"] for rule in pack.every_rule]
    for dashboard in pack.dashboards.values():
        exprs += [target["expr"] for panel in panels_of(dashboard) for target in panel.get("targets", [])]
    used: set[str] = set()
    for expr in exprs:
        with suppress(QueryError):
            used |= {metric.name for series in metrics_of(expr) if (metric := metric_behind(series))}
    return BY_NAME.keys() - used


def _read(folder: Path) -> _Pack:
    if not (folder / RULES_FILE).is_file():
        raise NoPackError(f"no rule file {folder / RULES_FILE}")
    unreadable: list[str] = []
    rules, grafana_alerts = (_yaml(folder, name, unreadable) for name in (RULES_FILE, GRAFANA_ALERTS_FILE))
    dashboards = {}
    for path in sorted((folder / "dashboards").glob("*.json")):
        try:
            dashboards[path.name] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            unreadable.append(f"dashboards/{path.name}: not JSON: {error}")
    runbooks = {path.stem: path.read_text(encoding="utf-8") for path in sorted((folder / "runbooks").glob("*.md"))}
    return _Pack(rules, grafana_alerts, dashboards, runbooks, unreadable)


def _yaml(folder: Path, name: str, unreadable: list[str]) -> Mapping[str, Any]:
    """Return a document, or nothing for a file that is missing or, as ``unreadable`` then says, no YAML."""
    try:
        return value_of((folder / name).read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        return {}
    except yaml.YAMLError as error:
        unreadable.append(f"{name}: not YAML: {error}")
        return {}


def _link_faults(rules: list[Mapping[str, Any]], uids: set[str | None]) -> Iterator[str]:
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

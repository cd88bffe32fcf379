"""Checks of dashboards: structure, panels and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from turnwatch.metrics.catalogue import CATALOGUE
from turnwatch.pack.queries import faults_of, metric_behind, metrics_of

COLUMNS: Final = 24
_UID: Final = re.compile(r"[a-z0-9-]{1,40}")
_ALWAYS_THERE: Final = frozenset({"job", *(label for metric in CATALOGUE for label in metric.labels)})
_REQUIRED: Final = ("title", "description", "tags", "links", "timezone", "refresh", "schemaVersion")


def dashboard_faults(dashboard: Mapping[str, Any], *, recorded: frozenset[str] = frozenset()) -> list[str]:
    """Return what is wrong with a dashboard, one line each.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
    """
    faults = [f"{key} is missing" for key in _REQUIRED if not dashboard.get(key)]
    if not _UID.fullmatch(dashboard.get("uid") or ""):
        faults.append("the uid is not short, readable and fixed")
    if dashboard.get("editable") is not False:
        faults.append("editable: what is generated must not be edited in place")
    variables = {variable["name"]: variable for variable in dashboard.get("templating", {}).get("list", [])}
    faults += _variable_faults(variables)
    shown = list(panels_of(dashboard))
    faults += _layout_faults(dashboard.get("panels", []))
    for panel in shown:
        faults += [f"panel {panel.get('title')!r}: {fault}" for fault in _panel_faults(panel, variables, recorded)]
    return faults


def panels_of(dashboard: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the panels that show something, those of collapsed rows included."""
    for panel in dashboard.get("panels", []):
        if panel.get("type") == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def _variable_faults(variables: Mapping[str, Any]) -> list[str]:
    if "datasource" not in variables:
        return ["there is no variable datasource"]
    return [
        f"variable {name}: not multi with allValue {_all(name)}"
        for name, variable in variables.items()
        if variable["type"] == "query" and not (variable.get("multi") and variable.get("allValue") == _all(name))
    ]


def filled_in(expr: str, values: Mapping[str, str]) -> str:
    """A query of a panel with its variables filled in; those without a value stand for everything."""
    return re.sub(r"\$(\w+)", lambda found: values.get(found[1], _all(found[1])), expr)


def _all(name: str) -> str:
    """What a variable stands for that is not chosen: not all targets have a cluster or the like."""
    return ".+" if name in _ALWAYS_THERE else ".*"


def _layout_faults(panels: list[Mapping[str, Any]]) -> list[str]:
    faults = []
    taken: dict[tuple[int, int], str | None] = {}
    seen: set[int] = set()
    for panel in panels:
        title, place = panel.get("title"), panel.get("gridPos")
        if panel.get("id") is None or not place:
            faults.append(f"panel {title!r} has no id or no place")
            continue
        if panel["id"] in seen:
            faults.append(f"panel id {panel['id']} stands twice")
        seen.add(panel["id"])
        if place["x"] + place["w"] > COLUMNS:
            faults.append(f"panel {title!r} goes past column {COLUMNS}")
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        if hidden := cells & taken.keys():
            faults.append(f"panel {title!r} lies over {taken[min(hidden)]!r}")
        taken |= dict.fromkeys(cells, title)
    return faults


def _panel_faults(panel: Mapping[str, Any], variables: Mapping[str, Any], recorded: frozenset[str]) -> list[str]:
    faults = [f"{key} is missing" for key in ("title", "description") if not panel.get(key)]
    if not panel.get("fieldConfig", {}).get("defaults", {}).get("unit") and panel.get("type") != "text":
        faults.append("unit is missing")
    for target in panel.get("targets", []):
        expr = target.get("expr", "")
        of_query = faults_of(expr, recorded=recorded)
        if not of_query:
            of_query += _filter_faults(expr, variables)
        if re.search(r"\b(rate|increase)\([^\[]*\[[0-9]+[smh]\]", expr):
            of_query.append("rate over a fixed window; use $__rate_interval")
        faults += [f"{fault} in {expr}" for fault in of_query]
    return faults


def _filter_faults(expr: str, variables: Mapping[str, Any]) -> list[str]:
    faults = []
    for series in metrics_of(expr):
        metric = metric_behind(series)
        if metric is None:
            continue
        above = [name for name, variable in variables.items() if variable["type"] == "query" and _all(name) == ".*"]
        wanted = [*above, *(name for name in ("job", *metric.labels) if name in variables)]
        faults += [f"{series} is not filtered by ${name}" for name in wanted if f'{name}=~"${name}"' not in expr]
    return faults

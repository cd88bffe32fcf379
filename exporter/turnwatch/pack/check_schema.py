"""Checks dashboards and Grafana's own alerts against Grafana's JSON schemas.

The schemas come from grafana/grafana-foundation-sdk (``jsonschema/*.jsonschema.json``); they are not shipped.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from turnwatch.errors import MissingExtraError
from turnwatch.pack.check_dashboards import panels_of
from turnwatch.pack.home import NoPackError

DASHBOARD: Final = "dashboard.jsonschema.json"
ALERTING: Final = "alerting.jsonschema.json"
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def schema_faults(dashboard: Mapping[str, Any], schemas: Path) -> list[str]:
    """Return where a dashboard is not what Grafana's schemas say, one line each.

    Args:
        dashboard: The dashboard's JSON.
        schemas: Folder that holds ``dashboard.jsonschema.json`` and one file for each kind of panel.

    Raises:
        MissingExtraError: The ``jsonschema`` package is missing.
        NoPackError: There is no schema of dashboards in that folder.
    """
    if not (schemas / DASHBOARD).is_file():
        raise NoPackError(f"no schema {schemas / DASHBOARD}")
    whole = _read(schemas / DASHBOARD)
    faults = list(_faults(dashboard, whole, ""))
    for panel in panels_of(dashboard):
        path = schemas / f"{panel['type'].replace('-', '')}.jsonschema.json"
        if not path.is_file():
            faults.append(f"panel {panel['title']!r}: there is no schema of {panel['type']} panels")
            continue
        definitions = _read(path)["definitions"]
        for kind, part in (
            ("Options", panel.get("options", {})),
            ("FieldConfig", panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {})),
        ):
            if kind in definitions:
                schema = {"$ref": f"#/definitions/{kind}", "definitions": definitions}
                faults += _faults(part, schema, f"panel {panel['title']!r}: {kind}: ")
    return faults


def alert_schema_faults(document: Mapping[str, Any], schemas: Path) -> list[str]:
    """Return where a file of provisioned alerts is not what Grafana's schema of rule groups says, one line each.

    Args:
        document: The file, as ``/etc/grafana/provisioning/alerting`` holds it.
        schemas: Folder that holds ``alerting.jsonschema.json``.

    Raises:
        MissingExtraError: The ``jsonschema`` package is missing.
        NoPackError: There is no schema of alerts in that folder.
    """
    if not (schemas / ALERTING).is_file():
        raise NoPackError(f"no schema {schemas / ALERTING}")
    definitions = json.loads((schemas / ALERTING).read_text(encoding="utf-8"))["definitions"]
    schema = {"$ref": "#/definitions/RuleGroup", "definitions": definitions}
    return [
        fault
        for group in document["groups"]
        for fault in _faults(_as_stored(group), schema, f"{group['folder']}, {group['name']}: ")
    ]


def _as_stored(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Grafana makes of a group in a file: the file names the folder and says durations in words."""
    place = {"orgID": group["orgId"], "folderUID": group["folder"], "ruleGroup": group["name"]}
    return {
        "title": group["name"],
        "folderUid": group["folder"],
        "interval": _nanoseconds(group["interval"]),
        "rules": [rule | place | {"keepFiringFor": _nanoseconds(rule["keepFiringFor"])} for rule in group["rules"]],
    }


def _nanoseconds(duration: str) -> int:
    return int(duration[:-1]) * _SECONDS[duration[-1]] * 10**9


def _faults(document: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for error in _jsonschema().Draft7Validator(schema).iter_errors(document):
        place = ".".join(str(part) for part in error.absolute_path)
        yield f"{where}{place}: {error.message[:200]}"


@lru_cache(maxsize=32)
def _read(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = _as_meant(json.loads(path.read_text(encoding="utf-8")))
    return schema


def _as_meant(schema: Any) -> Any:
    """Read "any" fields, written as objects without properties, as any; and ask for no field to be there.

    As published, the schemas refuse 27 of 27 dashboards that Grafana accepts.
    """
    if isinstance(schema, list):
        return [_as_meant(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "object" and not schema.get("properties") and not schema.get("additionalProperties"):
        return {}
    return {key: _as_meant(part) for key, part in schema.items() if key != "required"}


def _jsonschema() -> ModuleType:
    try:
        return importlib.import_module("jsonschema")
    except ImportError:
        raise MissingExtraError("checking against Grafana's schemas", "pack") from None

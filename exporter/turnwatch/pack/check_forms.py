"""Checks of the rules in the forms for other systems: what Prometheus would read of each file, and the queries."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from turnwatch.pack.check_rules import rule_faults
from turnwatch.pack.queries import faults_of
from turnwatch.pack.render import as_yaml
from turnwatch.pack.yaml_text import values_of

_SECONDS: Final = 60
_PLACE: Final = re.compile(r"^\S+\.yaml: (?:\d+:\d+: )?", re.MULTILINE)


def form_files(folder: Path) -> list[Path]:
    """Return the files with rules that ``pack render --for`` wrote below ``folder``."""
    patterns = (
        "mimir/*.yaml",
        "kubernetes/prometheusrule.yaml",
        "history/*.yaml",
        "grafana/provisioning/alerting/*.yaml",
    )
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))]


def unchecked_forms(folder: Path) -> list[str]:
    """Return what else lies beside these files and is not looked at: copies of what is checked as a plain file."""
    copies = [*sorted(folder.glob("kubernetes/*.yaml")), folder / "grafana" / "provisioning" / "dashboards"]
    checked = form_files(folder)
    return [path.relative_to(folder).as_posix() for path in copies if path.exists() and path not in checked]


def form_faults(folder: Path, recorded: frozenset[str]) -> Iterator[str]:
    """Say what is wrong with these files, one line each.

    Args:
        folder: Where ``turnwatch pack render`` wrote to.
        recorded: What the pack's rules record. In Mimir's files a group may read what another one's file records.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
    """
    for path in form_files(folder):
        name = path.relative_to(folder).as_posix()
        try:
            documents = [document for document in values_of(path.read_text("utf-8")) if document is not None]
        except yaml.YAMLError as error:
            yield f"{name}: not YAML: {error}"
            continue
        for document in documents:
            try:
                faults = list(_faults(document, name.partition("/")[0], recorded))
            except (AttributeError, KeyError, TypeError):
                faults = ["not the shape that `pack render` writes"]
            yield from (f"{name}: {fault}" for fault in faults)


def _faults(document: Mapping[str, Any], form: str, recorded: frozenset[str]) -> Iterator[str]:
    if form == "grafana":
        for rule in (rule for group in document["groups"] for rule in group["rules"]):
            exprs = [query["model"]["expr"] for query in rule["data"] if "expr" in query["model"]]
            yield from (f"{rule['title']}: {fault}" for expr in exprs for fault in faults_of(expr, recorded=recorded))
        return
    groups = document["spec"]["groups"] if form == "kubernetes" else document["groups"]
    yield from _said_by_promtool(groups)
    if form == "history":
        # Alerts are recorded there, under one name and without annotations.
        for rule in (rule for group in groups for rule in group["rules"]):
            name = rule.get("labels", {}).get("alertname", rule["record"])
            yield from (f"{name}: {fault}" for fault in faults_of(rule["expr"], recorded=recorded))
    else:
        yield from rule_faults({"groups": groups}, recorded)


def _said_by_promtool(groups: list[Any]) -> Iterator[str]:
    if not (promtool := shutil.which("promtool")):
        return
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(as_yaml({"groups": groups}))
        file.flush()
        command = [promtool, "check", "rules", file.name]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if answer.returncode != 0:
            # Without the places, which are those in the copy.
            said = _PLACE.sub("", (answer.stdout + answer.stderr).partition("FAILED:")[2]).replace(file.name, "")
            yield f"promtool says: {said.strip()}"

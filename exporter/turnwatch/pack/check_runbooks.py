"""Checks that every alert has a runbook a person can act on, and every runbook an alert."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from turnwatch.pack.queries import faults_of

HEADINGS: Final = (
    "Meaning",
    "Confirm",
    "Stop it",
    "Likely causes",
    "When to change the threshold",
    "A false alarm looks like this",
)
QUERIES: Final = 2
_QUERY: Final = re.compile(r"```promql\n(.*?)```", re.DOTALL)


def runbook_faults(runbooks: Mapping[str, str], alerts: set[str]) -> list[str]:
    """Return what is wrong with the runbooks, one line each.

    Args:
        runbooks: Markdown by alert name.
        alerts: Names of the alerts.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
    """
    faults = [f"{name}: there is no runbook" for name in sorted(alerts - runbooks.keys())]
    faults += [f"{name}: a runbook without an alert" for name in sorted(runbooks.keys() - alerts)]
    for name, text in sorted(runbooks.items()):
        if not text.startswith(f"# {name}\n"):
            faults.append(f"{name}: the title is not the alert's name")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        if headings != list(HEADINGS):
            faults.append(f"{name}: the headings are {headings}, not {list(HEADINGS)}")
        confirm = text.partition("## Confirm")[2].partition("\n## ")[0]
        if len(_QUERY.findall(confirm)) != QUERIES:
            faults.append(f"{name}: it is not confirmed in {QUERIES} queries")
        faults += [f"{name}: {fault}" for query in _QUERY.findall(text) for fault in faults_of(query.strip())]
    return faults

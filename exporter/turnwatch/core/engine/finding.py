"""What a rule found, before it is known whether the turn was told so already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwatch.core.verdict import SEVERITY_RANK, Kind, Severity


class Finding(NamedTuple):
    """A rule's result at one call; the fields are a verdict's.

    Attributes:
        numbers: The numbers of the calls that make up the pattern, the first one first.
    """

    kind: Kind
    severity: Severity
    numbers: Sequence[int]
    reason: str
    unchanged: str
    clears: str


def worst(findings: list[Finding]) -> Finding | None:
    """The first of the most severe findings."""
    return max(findings, key=lambda finding: SEVERITY_RANK[finding.severity], default=None)


def severity(count: int, warn: int, stuck: int) -> Severity | None:
    """The severity that a count has reached, if any."""
    if count >= stuck:
        return "stuck"
    return "warn" if count >= warn else None

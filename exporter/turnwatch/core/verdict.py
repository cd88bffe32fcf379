"""What the engine says about a turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

Kind = Literal["repeat", "stale_repeat", "cycle", "error_stall", "empty_results", "unknown_tool", "monologue", "window"]
Severity = Literal["observe", "warn", "stuck"]
Mode = Literal["full", "args_only", "none"]

SEVERITY_RANK: Final[dict[str, int]] = {"observe": 0, "warn": 1, "stuck": 2}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement on a turn, made at one call and never taken back.

    Attributes:
        kind: The shape of the repetition.
        severity: "stuck" is the only one that pages or stops.
        tool: The tool of the call at which the verdict fell.
        first_call: Number of the first call that belongs to the pattern (1-based, within the turn).
        detected_call: Number of the call at which the verdict fell (1-based, within the turn).
        reason: One sentence without raw arguments or results.
        mode: How much the engine could see: arguments and results, arguments only, or neither.
        calls: Numbers of the calls that make up the pattern (bounded), for explanation.
        unchanged: What stayed the same, in words.
        clears: What would have cleared the verdict, in words.
    """

    kind: Kind
    severity: Severity
    tool: str
    first_call: int
    detected_call: int
    reason: str
    mode: Mode
    calls: tuple[int, ...] = ()
    unchanged: str = ""
    clears: str = ""

    def __str__(self) -> str:
        return f"{self.severity}, {self.kind}: {self.reason}"


def graver(one: Verdict | None, other: Verdict) -> Verdict:
    """The graver of two verdicts, the first where they are alike."""
    return other if one is None or SEVERITY_RANK[other.severity] > SEVERITY_RANK[one.severity] else one


def in_its_turn(verdict: Verdict, calls: int) -> Verdict:
    """A conversation's verdict, with the numbers of the calls of the turn in which it fell.

    Args:
        verdict: The verdict, with the numbers of the conversation's calls.
        calls: How many calls the turn has made.
    """
    offset = verdict.detected_call - calls
    return replace(
        verdict,
        first_call=max(1, verdict.first_call - offset),
        detected_call=max(1, verdict.detected_call - offset),
        reason=f"{verdict.reason.rstrip('.')}, over the turns of the conversation.",
        calls=tuple(number - offset for number in verdict.calls if number > offset),
    )


def explain(verdict: Verdict) -> str:
    """A verdict in words, for people."""
    numbers = ", ".join(str(number) for number in verdict.calls) or f"{verdict.first_call} to {verdict.detected_call}"
    parts = [f"Call {verdict.detected_call}: {verdict.reason}", f"Calls: {numbers}."]
    if verdict.unchanged:
        parts.append(f"Unchanged: {verdict.unchanged}")
    if verdict.clears:
        parts.append(f"Would have cleared it: {verdict.clears}")
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts)

"""Did the turn do what the user asked? What a judge's answer means; the judge is the user's."""

from __future__ import annotations

from turnwatch.core.guard import GoalVerdict

GOAL_FAILED = "goal_failed"


def goal_verdict(answer: object) -> GoalVerdict:
    """A judge's answer as a verdict: True or "met", False or "missed", None or "unknown".

    Raises:
        TypeError: It is something else.
    """
    match answer:
        case True | "met":
            return "met"
        case False | "missed":
            return "missed"
        case None | "unknown":
            return "unknown"
    raise TypeError("a judge answers True, False, None, 'met', 'missed' or 'unknown'")

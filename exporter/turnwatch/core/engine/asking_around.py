"""Does it ask in ever new words and get the same?"""

from __future__ import annotations

from turnwatch.core.engine.finding import Finding, severity
from turnwatch.core.engine.streaks import Streak
from turnwatch.core.engine.thresholds import Thresholds


def empty(tool: str, streak: Streak, t: Thresholds) -> Finding | None:
    """Calls of one tool that all found nothing."""
    found = severity(streak.rounds, t.empty_warn, t.empty_stuck)
    return found and Finding(
        "empty_results",
        found,
        streak.numbers,
        f"{tool} found nothing {streak.rounds} times in a row, whatever the arguments.",
        "the result: nothing",
        "a result that is not empty, or news from another call",
    )


def reworded(tool: str, streak: Streak, t: Thresholds) -> Finding | None:
    """Differently worded calls of one reading tool with one and the same result."""
    found = severity(streak.rounds, t.reworded_warn, t.reworded_stuck)
    return found and Finding(
        "stale_repeat",
        found,
        streak.numbers,
        f"{tool} gave one and the same result {streak.rounds} times in a row for differently worded arguments.",
        "the tool and its result",
        "a different result, or news from another call",
    )

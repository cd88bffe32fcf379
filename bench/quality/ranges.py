"""Each threshold alone, through its range: where do the labels turn wrong?"""

from __future__ import annotations

from dataclasses import replace

from bench.quality.measure import Score
from bench.quality.recordings import Recording
from bench.quality.rules import engine_with

from turnwatch.core.engine import Thresholds

VALUES: dict[str, tuple[float, ...]] = {
    "stale_stuck": (3, 4, 5),
    "error_stuck": (2, 3, 4),
    "futile_stuck": (3, 6, 9),
    "similar_errors_stuck": (4, 5, 6, 7, 8, 9),
    "no_news_stuck": (4, 5, 6, 9),
    "cycle_repetitions": (2, 3, 4),
    "nearly": (0, 1, 3),
    "stale_novel": (0, 0.5, 1, 9),
    "error_novel": (0, 0.5, 1, 2, 9),
    "reworded_stuck": (3, 4, 5, 8),
    "empty_stuck": (5, 8, 12),
}


def report(recordings: list[Recording]) -> str:
    """A row for each value: the labelled runs on which the engine is wrong, and the successful runs it would stop."""
    told = [one for one in recordings if one.success or one.stuck is not None]
    lines = ["| threshold | wrong on labelled runs | stops successes |", "| --- | --- | --- |"]
    for name, values in VALUES.items():
        for value in values:
            score = Score(told, engine_with(moved(name, value)))
            stopped, runs = score.stopped_successes
            wrong = ", ".join(score.wrong) or "-"
            lines.append(f"| {name} {value:g} | {wrong} | {stopped}/{runs} |")
    return "\n".join(lines)


def moved(name: str, value: float) -> Thresholds:
    """The defaults but for one threshold; its warning comes no later than the verdict."""
    default = Thresholds()
    warning = name.removesuffix("_stuck") + "_warn"
    changed = {name: value}
    if name.endswith("_stuck") and hasattr(default, warning):
        changed[warning] = min(getattr(default, warning), value)
    return replace(default, **changed)

"""Thresholds chosen without one source, measured on it: would they have been the same, and as good?"""

from __future__ import annotations

import itertools
from dataclasses import replace

from bench.quality.measure import Score
from bench.quality.recordings import Recording
from bench.quality.rules import engine_with

from turnwatch.core.engine import Thresholds

GRID: dict[str, tuple[float, ...]] = {
    "stale_stuck": (3, 4, 5),
    "error_stuck": (2, 3, 4),
    "similar_errors_stuck": (4, 5, 6, 8),
    "no_news_stuck": (4, 6, 8),
    "cycle_repetitions": (2, 3),
}
LEAST_PRECISION = 0.95


def report(recordings: list[Recording]) -> str:
    """For each source: the settings that are best on the others, and what they do on it."""
    read = [one for one in recordings if one.stuck is not None]
    default = Thresholds()
    fires: dict[tuple[float, ...], dict[str, bool]] = {}
    for values in itertools.product(*GRID.values()):
        chosen = dict(zip(GRID, values, strict=True))
        chosen["error_warn"] = min(default.error_warn, chosen["error_stuck"])
        score = Score(read, engine_with(replace(default, **chosen)))
        fires[values] = {name: stop is not None for name, stop in score.stops.items()}
    lines = [f"defaults: {_of(default)}"]
    for source in sorted({one.source for one in read}):
        others = [one for one in read if one.source != source]
        held_out = [one for one in read if one.source == source]
        scores = {values: _f1(others, fires[values]) for values in fires}
        top = {values for values, score in scores.items() if score == max(scores.values())}
        # Of settings that are equally good, the one with most of its neighbours as good; then the most cautious.
        best = max(top, key=lambda values: (sum(near in top for near in _neighbours(values)), values))
        right = sum(fires[best][one.trajectory_id] == one.stuck for one in held_out)
        at_default = fires[tuple(getattr(default, name) for name in GRID)]
        right_at_default = sum(at_default[one.trajectory_id] == one.stuck for one in held_out)
        lines.append(
            f"without {source}: {dict(zip(GRID, best, strict=True))} (F1 {scores[best]:.3f} on the others, "
            f"{len(top)} settings as good); on {source}: {right} of {len(held_out)} right, defaults {right_at_default}"
        )
    return "\n".join(lines)


def _f1(recordings: list[Recording], fires: dict[str, bool]) -> float:
    true_positives = sum(1 for one in recordings if one.stuck and fires[one.trajectory_id])
    fired = sum(fires[one.trajectory_id] for one in recordings)
    stuck = sum(1 for one in recordings if one.stuck)
    if not true_positives or true_positives / fired < LEAST_PRECISION:
        return 0.0
    return 2 * true_positives / (fired + stuck)


def _neighbours(values: tuple[float, ...]) -> list[tuple[float, ...]]:
    """Settings one step away in one threshold."""
    near = []
    for place, steps in enumerate(GRID.values()):
        at = steps.index(values[place])
        near += [(*values[:place], step, *values[place + 1 :]) for step in steps[max(0, at - 1) : at + 2]]
    return [other for other in near if other != values]


def _of(thresholds: Thresholds) -> dict[str, float]:
    return {name: getattr(thresholds, name) for name in GRID}

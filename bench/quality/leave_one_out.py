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
    "no_news_stuck": (7, 9, 12),
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
        best = max(fires, key=lambda values: (_f1(others, fires[values]), -_distance(values, default)))
        ties = sum(_f1(others, fires[values]) == _f1(others, fires[best]) for values in fires)
        right = sum(fires[best][one.trajectory_id] == one.stuck for one in held_out)
        at_default = fires[tuple(getattr(default, name) for name in GRID)]
        right_at_default = sum(at_default[one.trajectory_id] == one.stuck for one in held_out)
        lines.append(
            f"without {source}: {dict(zip(GRID, best, strict=True))} (F1 {_f1(others, fires[best]):.3f} on the others, "
            f"{ties} settings as good); on {source}: {right} of {len(held_out)} right, defaults {right_at_default}"
        )
    return "\n".join(lines)


def _f1(recordings: list[Recording], fires: dict[str, bool]) -> float:
    true_positives = sum(1 for one in recordings if one.stuck and fires[one.trajectory_id])
    fired = sum(fires[one.trajectory_id] for one in recordings)
    stuck = sum(1 for one in recordings if one.stuck)
    if not true_positives or true_positives / fired < LEAST_PRECISION:
        return 0.0
    return 2 * true_positives / (fired + stuck)


def _distance(values: tuple[float, ...], default: Thresholds) -> float:
    return sum(abs(value - getattr(default, name)) for name, value in zip(GRID, values, strict=True))


def _of(thresholds: Thresholds) -> dict[str, float]:
    return {name: getattr(thresholds, name) for name in GRID}

"""Histograms of one line, drawn with block characters."""

from __future__ import annotations

import math
from typing import Final

from turnwatch.pack.tuning.distribution import Distribution

_LEVELS: Final = "▁▂▃▄▅▆▇█"


def bars(values: Distribution, width: int) -> str:
    """How values are spread, from the smallest to the largest.

    The steps are of equal ratio where the largest is more than ten times the smallest, else of equal size. Empty steps
    are blank, and whatever is not empty can be seen.

    Args:
        values: At least one.
        width: Characters, at most. Few different whole numbers take fewer: one each.
    """
    found = [(value, count) for value, count in values if value > 0]
    if not found:
        return ""
    smallest, largest = found[0][0], found[-1][0]
    if smallest == largest:
        width = 1
    elif largest - smallest < width and all(value == int(value) for value, _ in found):
        width = int(largest - smallest) + 1
    is_log = largest > 10 * smallest
    low, high = (math.log(smallest), math.log(largest)) if is_log else (smallest, largest)
    steps = [0] * width
    for value, count in found:
        place = ((math.log(value) if is_log else value) - low) / (high - low) if high > low else 0.0
        steps[min(width - 1, int(place * width))] += count
    most = max(steps)
    return "".join(_LEVELS[math.ceil(count / most * len(_LEVELS)) - 1] if count else " " for count in steps)

"""What can be said when results are not known."""

from __future__ import annotations

from collections import deque

from turnwatch.core.engine.finding import Finding
from turnwatch.core.engine.thresholds import Thresholds


def without_results(tool: str, key: int, latest: deque[tuple[int, int]], t: Thresholds) -> Finding | None:
    """The rules of the first loop detectors, and never more than a warning.

    Args:
        tool: The tool of the latest call.
        key: The key of the latest call.
        latest: (key, call number) of the latest calls, the present one last.
        t: The thresholds.
    """
    numbers = [number for other, number in latest if other == key]
    count = len(numbers)
    in_a_row = 0
    for other, _ in reversed(latest):
        if other != key:
            break
        in_a_row += 1
    if in_a_row >= t.blind_in_a_row:
        return Finding(
            "repeat",
            "warn",
            numbers[-in_a_row:],
            f"{tool} was called {in_a_row} times in a row with the same arguments; its results are not known.",
            "the tool and its arguments",
            "another call between, or results that show a change",
        )
    if count >= t.blind_in_window:
        return Finding(
            "window",
            "warn",
            numbers,
            f"{count} of the last {len(latest)} calls were {tool} with the same arguments; its results are not known.",
            "the tool and its arguments",
            "other calls between, or results that show a change",
        )
    return None

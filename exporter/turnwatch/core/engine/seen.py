"""What the latest call was against those before it."""

from __future__ import annotations

from typing import Literal


class Seen:
    """What the latest call was, for counting.

    Attributes:
        repeat_result: Against the previous identical call of the turn: "same", "changed", or "unknown" when
            one of the two results is not known; None when there was no identical call before.
        stale_calls: Rounds of this same call with this same result while nothing changed, the first one
            included; 0 when this is not a stale call, 1 when it is a poll that is not stuck.
        stuck: Whether it belongs to a pattern that is stuck, reported before or not.
    """

    __slots__ = ("repeat_result", "stale_calls", "stuck")

    def __init__(self) -> None:
        self.repeat_result: Literal["same", "changed", "unknown"] | None = None
        self.stale_calls = 0
        self.stuck = False

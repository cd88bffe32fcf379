"""When a recorded turn's calls were made, where the file says it, and where it does not."""

from __future__ import annotations

from typing import Final

from turnwatch.core.events import ModelCall, ToolCall

# No agent ran before 2000, and none will be asked about after 2100: what is outside are no seconds since the epoch.
EARLIEST: Final = 946_684_800.0
LATEST: Final = 4_102_444_800.0
# Times that count from the beginning of a run do not count for longer.
_LONGEST_RUN: Final = 30 * 86_400.0


class TimesOfDay:
    """Gives the calls of one turn times of day.

    Args:
        started: When the turn started, as the file says it.
        starting: When a turn without times of day is taken to have begun; None when that is not said.
        spacing: Seconds between calls without times, in a turn without times of day.

    Attributes:
        is_known: Whether the file's times are times of day.
        began, latest: The earliest and the latest time so far.
        offset: What is added to the file's times.
    """

    __slots__ = ("_origin", "_spacing", "began", "is_known", "latest", "offset")

    def __init__(self, started: float, starting: float | None, spacing: float) -> None:
        self.is_known = EARLIEST <= started < LATEST
        self._origin = started if 0.0 <= started < LATEST else 0.0
        self._spacing = 0.0 if self.is_known else spacing
        self.offset = 0.0 if self.is_known or starting is None else starting - self._origin
        self.began = self.latest = self._origin + self.offset

    def place(self, call: ToolCall | ModelCall) -> tuple[float, float]:
        """When a call began and ended. A call without times is put after the latest one, and keeps none."""
        said = self._time_of_day(call.started if call.started is not None else call.ended)
        if said is None:
            call.started = call.ended = None
            began = ended = self.latest + self._spacing
        else:
            began = call.started = said
            ended = call.ended = max(said, self._time_of_day(call.ended) or 0.0)
        self.began = min(self.began, began)
        self.latest = max(self.latest, ended)
        return began, ended

    def end(self, said: float) -> float:
        """When the turn ended: not before the last of its calls."""
        return max(self.latest, self._time_of_day(said) or 0.0)

    def _time_of_day(self, said: float | None) -> float | None:
        if said is None:
            return None
        if self.is_known:
            return said if EARLIEST <= said < LATEST else None
        return said + self.offset if 0.0 <= said - self._origin <= _LONGEST_RUN else None

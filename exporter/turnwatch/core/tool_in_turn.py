"""One tool within one turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnwatch.core.events import ToolCall
from turnwatch.core.series import ToolSeries

if TYPE_CHECKING:
    from turnwatch.settings import ToolOverride


class ToolInTurn:
    """One tool within one turn: its series, and what is still to be counted when the turn ends.

    Attributes:
        unfinished: Calls begun and not ended.
        pending: Repeats whose result is not known yet.
        written_off: Calls that had not ended when the turn did, and were counted as errors then.
    """

    __slots__ = ("override", "pending", "series", "unfinished", "written_off")

    def __init__(self, series: ToolSeries, override: ToolOverride | None) -> None:
        self.series = series
        self.override = override
        self.unfinished = 0
        self.pending = 0
        self.written_off = 0

    def call_ended(self, outcome: str) -> None:
        """Count what came of a call, unless the end of the turn has done so."""
        if self.unfinished:
            self.unfinished -= 1
        elif self.written_off:
            self.written_off -= 1
            return
        (self.series.calls.get(outcome) or self.series.call(outcome)).inc()

    def repeat_ended(self, result: str) -> None:
        """Count how the result of a repeat compares, unless the end of the turn has counted it as unknown."""
        if self.pending:
            self.pending -= 1
            self.series.results[result].inc()

    def turn_ended(self) -> None:
        """Count what has not come back as an error, with a result that is not known."""
        if self.pending:
            self.series.result("unknown").inc(self.pending)
            self.pending = 0
        if self.unfinished:
            self.series.call("error").inc(self.unfinished)
            self.written_off += self.unfinished
            self.unfinished = 0

    @staticmethod
    def apply_override(call: ToolCall, override: ToolOverride) -> None:
        """Let what the settings say about the tool win over what the call's source said."""
        if override.read_only is not None:
            call.read_only = override.read_only
        if override.polling is not None:
            call.polling = override.polling
        if override.idempotent is not None:
            call.idempotent = override.idempotent
        if override.side_effect is not None:
            call.destructive = override.side_effect

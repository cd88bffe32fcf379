"""One tool within one turn."""

from __future__ import annotations

from turnwatch.core.events import ToolCall
from turnwatch.core.series import ToolSeries
from turnwatch.settings import ToolOverride


class ToolInTurn:
    """One tool within one turn: its series, and what is still to be counted when the turn ends.

    Attributes:
        unfinished: Calls begun and not ended.
        pending: Repeats whose result is not known yet.
    """

    __slots__ = ("override", "pending", "series", "unfinished")

    def __init__(self, series: ToolSeries, override: ToolOverride | None) -> None:
        self.series = series
        self.override = override
        self.unfinished = 0
        self.pending = 0

    def apply_override(self, call: ToolCall) -> None:
        """Let what the settings say about the tool win over what the call's source said."""
        override = self.override
        if override is None:
            return
        if override.read_only is not None:
            call.read_only = override.read_only
        if override.polling is not None:
            call.polling = override.polling
        if override.idempotent is not None:
            call.idempotent = override.idempotent
        if override.side_effect is not None:
            call.destructive = override.side_effect

"""From which numbers on an agent is worth a look."""

from __future__ import annotations

from typing import Final, Literal

from turnwatch.settings import Settings

State = Literal["STUCK", "WARN", "busy", "idle", "gone"]
RANK: Final[dict[State, int]] = {"gone": 0, "idle": 1, "busy": 1, "WARN": 2, "STUCK": 3}
"""How much a state asks to be seen. Busy and idle come and go with every turn, and are one."""

RECENT_SECONDS: Final = 300.0
"""For how long a verdict marks its agent: as long as the gauges and the alerts look back."""


class Marks:
    """Thresholds, those of the exporter's own settings.

    Args:
        settings: Its ``detect``, ``agents`` and ``tools`` sections are used.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def identical_calls(self, agent: str, tool: str) -> int | None:
        """How many identical calls are still fine; None for a tool that is meant to be asked again."""
        override = self._settings.tools.overrides.get(tool)
        if override is not None and override.polling:
            return None
        return self._settings.identical_calls_allowed(agent, tool)

    def iterations(self, agent: str) -> int:
        """How many model calls of a turn are still fine."""
        return self._settings.iterations_allowed(agent)

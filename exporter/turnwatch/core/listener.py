"""Who wants to hear what turns do, beside the metrics of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from turnwatch.core.events import ModelCall, ToolCall

if TYPE_CHECKING:
    from turnwatch.core.turn import TurnState


class Listener(Protocol):
    """Hears of every ended call and turn. What it raises is counted and kept from the agent."""

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        """A model call has ended."""

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        """A tool call has ended."""

    def turn_ended(self, turn: TurnState) -> None:
        """A turn has ended."""

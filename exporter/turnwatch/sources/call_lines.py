"""Where in a file the calls of a turn stand."""

from __future__ import annotations

from array import array
from typing import Final, final
from weakref import WeakKeyDictionary

from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.turn import TurnState

_MAX_CALLS: Final = 100_000


@final
class CallLines:
    """A listener (see ``turnwatch.core.listener``) that remembers the lines of the calls of open turns."""

    def __init__(self) -> None:
        self._lines: WeakKeyDictionary[TurnState, array[int]] = WeakKeyDictionary()

    def of_loops(self, turn: TurnState, line: int | None) -> tuple[int | None, ...]:
        """For each verdict of an ended turn the line of the loop's first call; to be asked for once.

        Args:
            turn: The turn.
            line: Where it begins, for calls of which nothing nearer is known.
        """
        lines = self._lines.pop(turn, None) or ()
        return tuple(
            (lines[verdict.first_call - 1] if verdict.first_call <= len(lines) else None) or line
            for verdict in turn.verdicts
        )

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        """Verdicts count tool calls."""

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        """Remember the line; of calls without one nothing, until the first that has one."""
        lines = self._lines.get(turn)
        if lines is None:
            if call.line is None:
                return
            lines = self._lines[turn] = array("Q")
        number = turn.engine.calls
        if number > _MAX_CALLS:
            return
        while len(lines) < number:
            lines.append(0)
        lines[number - 1] = call.line or 0

    def turn_ended(self, turn: TurnState) -> None:
        """Whoever reads the file asks then."""
        if not turn.verdicts:
            self._lines.pop(turn, None)

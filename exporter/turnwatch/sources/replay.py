"""Recorded events through a turn state: a file's turns are judged by the same code as live ones."""

from __future__ import annotations

from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.trajectories import RecordedTurn


def replay(recorded: RecordedTurn, watch: Watch, parent: TurnState | None = None) -> TurnState:
    """The turn that these events make.

    Args:
        recorded: Model calls and tool calls in order.
        watch: Settings and conversations; give each file one of its own.
        parent: The state that the turn's parent became, for sub-agents.
    """
    first = next((event.started for event in recorded.events if event.started is not None), None)
    turn = TurnState(
        recorded.agent,
        conversation_id=recorded.conversation_id,
        parent=parent,
        turn_id=recorded.turn_id,
        at=first if first is not None else 0.0,
        watch=watch,
        source="file",
    )
    at = turn.started
    for event in recorded.events:
        at = max(at, event.ended or event.started or at)
        if isinstance(event, ToolCall):
            turn.begin_call(event)
            turn.end_call(event)
        elif isinstance(event, ModelCall):
            turn.begin_model(at)
            turn.end_model(event)
    turn.end(recorded.stop_reason, at)
    return turn

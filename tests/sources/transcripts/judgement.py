"""What must be the same of a turn however its calls came to be known."""

from __future__ import annotations

from typing import Any

from turnwatch.core.turn import TurnState


def judged(turn: TurnState) -> dict[str, Any]:
    """What must be the same however the calls came to be known."""
    return {
        "counts": (turn.iterations, turn.tool_calls, turn.repeats, turn.duplicates, turn.wasted_tool_calls),
        "verdicts": [(v.kind, v.severity, v.tool, v.first_call, v.detected_call) for v in turn.verdicts],
    }

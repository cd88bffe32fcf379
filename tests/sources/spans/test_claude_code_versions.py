"""Spans and log events of Claude Code as its version 2.1.197 sent them: hardly an attribute of the conventions."""

from pathlib import Path

import pytest

from turnwatch.sources.scan import ScannedTurn, scan


def test_spans_that_have_only_names_are_read():
    found = [item for item in scan([Path(__file__).parent / "claude_code_2_1_197"]) if isinstance(item, ScannedTurn)]
    (turn,) = (item.state for item in found)
    assert (turn.agent, turn.conversation_id) == ("claude-code", "session-1")
    assert (turn.iterations, turn.tool_calls, turn.repeats, turn.missing_arguments) == (6, 5, 4, 0)
    assert (turn.stop_reason, [verdict.severity for verdict in turn.verdicts]) == ("final_answer", ["stuck"])
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (6000, 600)
    assert turn.spend_usd == pytest.approx(6 * 0.0045)  # what its own log events say

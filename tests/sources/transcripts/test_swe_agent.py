"""Trajectories of SWE-agent: actions as calls, the run's tokens and dollars, how it ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sources.transcripts.judgement import judged


def run(steps: list[tuple[str, str]], status: str = "submitted", **more: Any) -> str:
    record = {
        "environment": "swe_main",
        "trajectory": [
            {"action": action, "observation": observation, "response": "Let me see.", "thought": "", "state": {}}
            for action, observation in steps
        ],
        "history": [],
        "info": {
            "exit_status": status,
            "model_stats": {"instance_cost": 0.9, "tokens_sent": 1000, "tokens_received": 100, "api_calls": len(steps)},
        },
        "replay_config": json.dumps({"agent": {"model": {"name": "gpt-4o"}}, "problem_statement": {"id": "repo-1"}}),
        **more,
    }
    return json.dumps(record, indent=2)


def test_a_run_is_a_turn_with_all_its_tokens_and_dollars(scanned):
    (turn,), unread = scanned(run([("ls -F\n", "a.py"), ("open a.py", "[File]"), ("submit", "")]), name="x.traj")
    assert unread == []
    assert (turn.conversation_id, turn.agent, turn.iterations, turn.tool_calls) == ("repo-1", "swe-agent", 3, 3)
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (1000, 100)
    assert turn.spend_usd == pytest.approx(0.9)
    assert turn.stop_reason == "final_answer"


def test_a_stuck_run_is_judged_as_by_hand(scanned, by_hand):
    (turn,), _ = scanned(run([("search_dir x", "No matches found")] * 6))
    assert turn.verdict is not None
    calls = [("search_dir", {"command": "search_dir x"}, "No matches found")] * 6
    expected = judged(by_hand(calls))
    assert judged(turn) == expected


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("submitted (exit_cost)", "max_usd"),
        ("exit_context", "max_turn_tokens"),
        ("exit_format", "error"),
        ("", "unknown"),
    ],
)
def test_how_a_run_ended(scanned, status, reason):
    (turn,), _ = scanned(run([("ls", "a")], status))
    assert turn.stop_reason == reason


def test_a_run_without_statistics_has_no_tokens(scanned):
    (turn,), _ = scanned(run([("ls", "a"), ("", "")], info={}, replay_config=None))
    assert (turn.iterations, turn.tool_calls, turn.usage, turn.conversation_id) == (2, 1, None, "1")

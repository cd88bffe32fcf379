"""Trajectories of mini-swe-agent: version 1, what ended a run, and broken ones. Recorded ones: test_recorded.py."""

from __future__ import annotations

import json
from typing import Any

import pytest


def run(messages: list[dict[str, Any]], status: str = "Submitted", version: str = "1.1", **info: Any) -> str:
    record = {
        "info": {"exit_status": status, "config": {"model": {"model_name": "openai/gpt-4o"}}, **info},
        "messages": [{"role": "system", "content": "You act."}, {"role": "user", "content": "Find it"}, *messages],
        "trajectory_format": f"mini-swe-agent-{version}",
        "instance_id": "repo-1",
    }
    return json.dumps(record, indent=2)


def said(command: str) -> dict[str, Any]:
    return {"role": "assistant", "content": f"THOUGHT: so\n\n```bash\n{command}\n```"}


def test_an_action_that_stands_only_in_the_text_is_a_call(scanned):
    seen = {"role": "user", "content": "<returncode>0</returncode>\nnothing"}
    (turn,), unread = scanned(run([said("ls x"), seen] * 4, version="1"), name="x.traj.json")
    assert unread == []
    assert (turn.conversation_id, turn.iterations, turn.tool_calls, turn.repeats) == ("repo-1", 4, 4, 3)
    assert turn.verdict is not None
    assert (turn.verdict.kind, turn.verdict.severity) == ("stale_repeat", "stuck")
    assert turn.usage is None


def test_two_actions_in_one_text_are_none(scanned):
    two = {"role": "assistant", "content": said("ls")["content"] + said("pwd")["content"]}
    (turn,), _ = scanned(run([two, {"role": "user", "content": "Exactly one, please"}]), name="x.traj.json")
    assert (turn.iterations, turn.tool_calls) == (1, 0)


@pytest.mark.parametrize(
    ("status", "info", "expected"),
    [
        ("Submitted", {}, "final_answer"),
        ("LimitsExceeded", {}, "max_iterations"),
        ("LimitsExceeded", {"model_stats": {"instance_cost": 3.1}}, "max_usd"),
        ("TimeExceeded", {}, "max_seconds"),
        ("RepeatedFormatError", {}, "error"),
        ("", {}, "unknown"),
    ],
)
def test_why_a_run_ended(scanned, status, info, expected):
    config = {"model": {"model_name": "gpt-4o"}, "agent": {"step_limit": 50, "cost_limit": 3.0}}
    (turn,), _ = scanned(run([said("ls")], status, config=config, **info), name="x.traj.json")
    assert turn.stop_reason == expected


def test_a_broken_run_is_named(scanned):
    turns, unread = scanned(run(["what is this"]), name="x.traj.json")
    assert turns == []
    assert unread == ["1: a message that cannot be read: a field is of another kind than in its format"]

"""Transcripts that the tools themselves wrote (recorded/README.md): counts, tokens, dollars, agents and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turnwatch.core.turn import TurnState
from turnwatch.sources.scan import ScannedTurn, scan

RECORDED = Path(__file__).parent / "recorded"


def scanned(folder: str) -> list[TurnState]:
    found = list(scan([RECORDED / folder]))
    assert all(isinstance(item, ScannedTurn) for item in found), found
    return [item.state for item in found if isinstance(item, ScannedTurn)]


def counts(turn: TurnState) -> tuple[Any, ...]:
    tokens = turn.usage and (turn.usage.input, turn.usage.output, turn.usage.cache_read)
    verdict = turn.verdict and (turn.verdict.kind, turn.verdict.severity, turn.verdict.detected_call)
    return turn.agent, turn.iterations, turn.tool_calls, turn.repeats, tokens, turn.stop_reason, verdict


def test_sessions_of_claude_code():
    stuck = ("error_stall", "stuck", 3)
    turns = scanned("claude-code")
    assert [counts(turn) for turn in turns] == [
        ("claude-code", 7, 6, 5, (7000, 700, 5600), "final_answer", stuck),
        ("claude-code", 2, 2, 0, (2000, 200, 1600), "final_answer", None),
        ("claude-code", 2, 1, 0, (2000, 200, 1600), "final_answer", None),
        ("claude-code", 3, 2, 1, (3000, 300, 2400), "final_answer", None),
        # What runs in the background reports its end within the turn that started it.
        ("claude-code", 3, 1, 0, (3000, 300, 2400), "final_answer", None),
        ("claude-code", 1, 0, 0, None, "error", None),
        ("claude-code", 2, 2, 0, (2000, 200, 1600), "final_answer", None),
        ("claude-code", 1, 1, 0, (1000, 100, 800), "user_cancelled", None),
        ("claude-code", 1, 0, 0, (1000, 100, 800), "final_answer", None),
        ("general-purpose", 6, 5, 4, (6000, 600, 4800), "final_answer", ("stale_repeat", "stuck", 4)),
    ]
    assert turns[-1].conversation_id == turns[0].conversation_id
    # What Claude Code itself said the first turn had cost, and the third with its sub-agent.
    assert turns[0].spend_usd == pytest.approx(0.016905)
    assert turns[2].spend_usd + turns[-1].spend_usd == pytest.approx(0.01932)


def test_a_turn_of_claude_code_that_was_compacted_in_its_middle_is_one_turn():
    """Its summary stands in the transcript, the request for it does not."""
    (turn,) = scanned("claude-code-compacted")
    stuck = ("error_stall", "stuck", 3)
    assert counts(turn) == ("claude-code", 7, 6, 5, (271_000, 700, 0), "final_answer", stuck)


def test_rollouts_of_codex():
    stuck = ("error_stall", "stuck", 3)
    turns = scanned("codex")
    assert [counts(turn) for turn in turns] == [
        ("codex", 7, 6, 5, (7000, 700, 5600), "final_answer", stuck),
        ("codex", 2, 2, 0, (2000, 200, 1600), "final_answer", None),
        ("codex", 3, 2, 0, (3000, 300, 2400), "final_answer", None),
        # One of the six is the request for a summary.
        ("codex", 6, 4, 0, (255000, 600, 4800), "final_answer", None),
        ("codex", 5, 4, 2, (5000, 500, 4000), "final_answer", None),
        ("codex", 1, 0, 0, None, "error", None),
        ("codex", 1, 1, 0, (1000, 100, 800), "user_cancelled", None),
        ("codex", 1, 0, 0, (1000, 100, 800), "final_answer", None),
        ("subagent", 6, 5, 4, (6000, 600, 4800), "final_answer", stuck),
    ]
    assert turns[-1].conversation_id == turns[0].conversation_id
    assert {model for turn in turns for model in turn.unpriced_models} == set()


def test_trajectories_of_mini_swe_agent_whether_its_actions_are_tool_calls_or_text():
    text, tool = scanned("mini-swe-agent")
    expected = ("mini-swe-agent", 8, 7, 4, (8000, 800, 0), "final_answer", ("error_stall", "stuck", 3))
    assert [counts(text), counts(tool)] == [expected, expected]
    # What mini-swe-agent said each of the runs had cost, the reply in a wrong format included.
    assert [turn.spend_usd for turn in (text, tool)] == [pytest.approx(0.028)] * 2


def test_runs_of_langsmith():
    assert [(turn.conversation_id, *counts(turn)) for turn in scanned("langsmith")] == [
        ("t-1", "support-bot", 7, 6, 5, (7000, 700, 0), "final_answer", ("stale_repeat", "stuck", 4)),
        ("t-1", "support-bot", 2, 2, 0, (2000, 200, 0), "final_answer", None),
        ("t-1", "support-bot", 1, 1, 0, (1000, 100, 0), "error", None),
    ]


def test_what_the_clients_of_openai_and_anthropic_sent_and_received():
    turns = scanned("clients")
    expected = ("", 6, 5, 4, (6000, 600, 0), "final_answer", ("stale_repeat", "stuck", 4))
    assert [counts(turn) for turn in turns] == [expected] * 4
    assert [turn.spend_usd for turn in turns] == pytest.approx([0.009, 0.009, 0.00126, 0.00126])

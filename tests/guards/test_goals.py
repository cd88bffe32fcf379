from __future__ import annotations

import asyncio

import pytest

import turnwatch as tw
from turnwatch.guards.frameworks.reported import ReportedTurn
from turnwatch.metrics.catalogue import CLOSED_LABELS


@pytest.mark.parametrize(
    ("answer", "verdict", "stop_reason"),
    [
        (True, "met", "final_answer"),
        ("met", "met", "final_answer"),
        (False, "missed", "goal_failed"),
        ("missed", "missed", "goal_failed"),
        (None, "unknown", "final_answer"),
        ("unknown", "unknown", "final_answer"),
        ("perhaps", "error", "final_answer"),
    ],
)
def test_a_judges_answer_is_metric_and_stop_reason(watch, answer, verdict, stop_reason):
    asked = []

    def judge(turn: tw.Turn) -> object:
        asked.append(turn.answer)
        return answer

    with tw.turn("a", watch=watch, goal=judge) as turn:
        turn.answer = "Your refund is on its way."
    assert asked == ["Your refund is on its way."]
    assert turn.stop_reason == stop_reason
    assert watch.value("agent_goal_checks_total", "a", verdict) == 1
    assert verdict in CLOSED_LABELS["verdict"]
    assert watch.value("agent_turns_total", "a", stop_reason) == 1


async def test_a_judge_may_be_a_coroutine_function(watch):
    async def judge(turn: tw.Turn) -> bool:
        return turn.answer == "done"

    async with tw.turn("a", watch=watch, goal=judge) as turn:
        turn.answer = "not done"
    assert turn.stop_reason == "goal_failed"


def test_a_coroutine_judge_of_a_plain_turn_is_a_counted_fault(watch):
    async def judge(turn: tw.Turn) -> bool:
        return False

    with tw.turn("a", watch=watch, goal=judge) as turn:
        pass
    assert turn.stop_reason == "final_answer"
    assert watch.value("turnwatch_internal_errors_total") == 1


def test_a_judge_that_raises_changes_nothing_and_is_counted(watch):
    with tw.turn("a", watch=watch, goal=lambda turn: 1 / 0) as turn:
        pass
    assert turn.stop_reason == "final_answer"
    assert watch.value("agent_goal_checks_total", "a", "error") == 1
    assert watch.value("turnwatch_internal_errors_total") == 1


async def test_a_turn_whose_judge_is_cancelled_is_over(watch):
    asked = asyncio.Event()

    async def judge(turn: tw.Turn) -> bool:
        asked.set()
        await asyncio.sleep(60)
        return True

    async def run(turn: tw.Turn) -> None:
        try:
            async with turn:
                pass
        finally:
            assert tw.current_turn() is None

    turn = tw.turn("a", watch=watch, goal=judge)
    running = asyncio.create_task(run(turn))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert turn.stop_reason == "user_cancelled"
    assert watch.value("agent_turns_total", "a", "user_cancelled") == 1


def test_a_turn_whose_judge_is_interrupted_is_over(watch):
    def interrupted(_turn: object) -> bool:
        raise KeyboardInterrupt

    turn = tw.turn("a", watch=watch, goal=interrupted)
    with pytest.raises(KeyboardInterrupt), turn:
        pass
    assert (turn.stop_reason, tw.current_turn()) == ("user_cancelled", None)
    reported = ReportedTurn("a", watch=watch, goal=interrupted)
    with pytest.raises(KeyboardInterrupt):
        reported.close()
    assert reported.state.stop_reason == "user_cancelled"


def test_turns_that_did_not_end_well_are_not_judged(watch):
    def fail() -> None:
        raise OSError("down")

    with pytest.raises(OSError, match="down"), tw.turn("a", watch=watch, goal=lambda turn: True):
        fail()
    stopped = tw.turn("a", watch=watch, goal=lambda turn: True, limits=tw.Limits(max_tool_calls=0))
    with stopped as turn, pytest.raises(tw.ToolBudgetExceeded):
        turn.call_tool("lookup", fail)
    with tw.turn("a", watch=watch, goal=lambda turn: True) as turn:
        turn.stop("user_cancelled")
    assert watch.total("agent_goal_checks_total") == 0

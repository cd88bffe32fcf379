"""Did the turn do what the user asked? The judge is the user's; this asks it and counts what it says."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import final

from turnwatch.core.guard import GoalVerdict, Judge
from turnwatch.core.turn import TurnState

GOAL_FAILED = "goal_failed"


@final
class GoalCheck:
    """Asks a judge about one turn.

    A judge that fails is counted as "error" and changes nothing.

    Args:
        judge: Called with the turn; may be a coroutine function. None judges nothing.
        state: The turn's counts.
    """

    __slots__ = ("_judge", "_state")

    def __init__(self, judge: Judge | None, state: TurnState) -> None:
        self._judge = judge
        self._state = state

    def ask(self, turn: object, *, may_await: bool) -> Awaitable[str | None] | str | None:
        """The stop reason of a missed goal, or None.

        An awaitable comes back only where ``may_await`` says that somebody will await it.
        """
        if self._judge is None:
            return None
        try:
            answer = self._judge(turn)
        except Exception:
            self._failed()
            return None
        if not inspect.isawaitable(answer):
            return self._judged(answer)
        if may_await:
            return self._judged_later(answer)
        if inspect.iscoroutine(answer):
            answer.close()
        self._failed()  # a coroutine needs `async with`
        return None

    async def _judged_later(self, answer: Awaitable[object]) -> str | None:
        try:
            return self._judged(await answer)
        except Exception:
            self._failed()
            return None

    def _judged(self, answer: object) -> str | None:
        try:
            verdict = goal_verdict(answer)
            self._state.watch.count("agent_goal_checks_total", self._state.series.label, verdict)
        except Exception:
            self._failed()
            return None
        return GOAL_FAILED if verdict == "missed" else None

    def _failed(self) -> None:
        watch = self._state.watch
        watch.internal_error("a goal's judge")
        try:
            watch.count("agent_goal_checks_total", self._state.series.label, "error")
        except Exception:
            watch.internal_error("a goal's judge")


def goal_verdict(answer: object) -> GoalVerdict:
    """A judge's answer as a verdict: True or "met", False or "missed", None or "unknown".

    Raises:
        TypeError: It is something else.
    """
    match answer:
        case True | "met":
            return "met"
        case False | "missed":
            return "missed"
        case None | "unknown":
            return "unknown"
    raise TypeError("a judge answers True, False, None, 'met', 'missed' or 'unknown'")

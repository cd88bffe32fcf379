"""May this turn go on? Asked before every model call and every tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, final

from turnwatch.core.account import Account, BudgetWarning
from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.guard import Judge, KillStore, Page, Response
from turnwatch.core.limits import NO_LIMITS, Limits
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.errors import ConversationKilled, TurnStopped
from turnwatch.guards.goal import GoalCheck
from turnwatch.guards.kill import AllKills, agent_of, flag_of_agent
from turnwatch.guards.partial import LatestResults, PartialResults
from turnwatch.guards.stuck_turn import StuckTurn
from turnwatch.guards.turn_budget import OF_MODEL_CALLS, OF_TOOL_CALLS, TurnBudget

_UNSET: Final = object()


@final
class TurnGuard:
    """The guard of one turn: its limits, its kill flag, and what is done when it is stuck.

    Nothing but TurnStopped leaves it. A fault inside is counted and the call goes on; with ``fail_closed`` the turn
    stops instead, at this fault or any other inside turnwatch since the turn began.

    Args:
        state: The turn.
        limits: Of the turn; its child turns pay from them too.
        conversation_limits: Of the turn's conversation, where it has one.
        on_loop: The response to a stuck verdict, or the steps to take.
        on_warning: Told when 50, 80 and 100 percent of a limit are used.
        goal: The judge that is asked when the turn has ended well.
        pager: Told whom to wake for.
        kills: Where kill flags are looked up: the turn's own and those of the turns above it.
        fail_closed: What a fault does.
        faults_before: Faults inside turnwatch before this turn began; those until now when left out.
    """

    __slots__ = (
        "_budget",
        "_fail_closed",
        "_faults_before",
        "_goal",
        "_kill_ids",
        "_kills",
        "_latest",
        "_partial",
        "_state",
        "_stopped_by",
        "_stuck",
        "_watch",
    )

    def __init__(
        self,
        state: TurnState,
        *,
        limits: Limits = NO_LIMITS,
        conversation_limits: Limits | None = None,
        on_loop: Response | Sequence[Response] = "observe",
        on_warning: Callable[[BudgetWarning], None] | None = None,
        goal: Judge | None = None,
        pager: Callable[[Page], None] | None = None,
        kills: KillStore | None = None,
        fail_closed: bool = False,
        faults_before: int | None = None,
    ) -> None:
        self._state = state
        self._watch = state.watch
        above = state.parent.guard if state.parent is not None else None
        parent = above if isinstance(above, TurnGuard) else None
        self._budget = TurnBudget(
            state, limits, conversation_limits, None if parent is None else parent.account, on_warning
        )
        self._stuck = StuckTurn(state, on_loop, pager)
        self._goal = GoalCheck(goal, state)
        self._kills = kills
        kill_ids = [state.conversation_id or state.turn_id]
        if isinstance(kills, AllKills):  # a store of the user's own knows conversations
            kill_ids.append(flag_of_agent(state.agent))
        self._kill_ids: tuple[str, ...] = tuple(
            dict.fromkeys((*kill_ids, *(() if parent is None else parent._kill_ids)))
        )
        self._fail_closed = fail_closed
        self._faults_before = self._watch.faults if faults_before is None else faults_before
        self._latest = LatestResults()
        self._partial: object = _UNSET
        self._stopped_by: str | None = None

    # Whether a call may start

    def before_model(self, call: ModelCall, reserve: Usage | float | None = None) -> None:
        """Admit a model call. See ``turnwatch.core.guard.Guard``."""
        stop: TurnStopped | None = None
        try:
            stop = self._what_stops_everything() or self._budget.admit_model(call, reserve)
            self._budget.warn(OF_MODEL_CALLS)
        except Exception:
            self._watch.internal_error("a model call's guard")
        try:
            self._stop(stop)
        except TurnStopped:
            self._budget.did_not_start(call)
            raise

    def before_tool(self, call: ToolCall) -> None:
        """Admit a tool call. See ``turnwatch.core.guard.Guard``."""
        stop: TurnStopped | None = None
        try:
            stop = self._what_stops_everything() or self._budget.admit_tool(call)
            self._budget.warn(OF_TOOL_CALLS)
        except Exception:
            self._watch.internal_error("a tool call's guard")
        try:
            self._stop(stop)
        except TurnStopped as stopped:
            call.outcome, call.error_type = "denied", type(stopped).__name__
            raise

    def _what_stops_everything(self) -> TurnStopped | None:
        killed = self._killed()
        if killed is not None:
            return ConversationKilled(f"this {'conversation' if agent_of(killed) is None else 'agent'} was killed")
        due = self._stuck.stop
        if due is None:
            return None
        # A fresh one: an exception that is raised twice grows a traceback of both places.
        return type(due)(str(due), stop_reason=due.stop_reason, details=due.details)

    def _killed(self) -> str | None:
        if self._kills is None:
            return None
        try:
            for kill_id in self._kill_ids:
                if self._kills.is_killed(kill_id):
                    return kill_id
        except Exception:  # the other guards are still there
            self._watch.internal_error("a kill store")
        return None

    # What came of it

    def after_model(self, call: ModelCall, verdict: Verdict | None) -> None:
        """Settle a model call. See ``turnwatch.core.guard.Guard``."""
        try:
            self._budget.settle(call)
            if verdict is not None and verdict.severity == "stuck":
                self._stuck.respond(verdict)
            self._budget.warn(OF_MODEL_CALLS)
        except Exception:
            self._watch.internal_error("a model call's guard")

    def after_tool(self, call: ToolCall, verdict: Verdict | None, result: object = None) -> None:
        """Note a tool call's result. See ``turnwatch.core.guard.Guard``."""
        stop: TurnStopped | None = None
        went_well = call.outcome == "ok" or call.outcome == "cached"
        try:
            if went_well:
                self._latest.add(call.tool, result)
            if verdict is not None and verdict.severity == "stuck":
                self._stuck.respond(verdict)
            elif self._state.still_stuck and self._state.verdict is not None:
                self._stuck.respond(self._state.verdict)
            if self._stuck.stop is not None:
                stop = self._what_stops_everything()
        except Exception:
            self._watch.internal_error("a tool call's guard")
        if went_well:
            self._stop(stop)

    def take_nudge(self) -> str | None:
        """The message for the model, once."""
        return self._stuck.take_nudge()

    # What is told

    @property
    def account(self) -> Account:
        """What the turn has used of its limits."""
        return self._budget.account

    @property
    def partial(self) -> object:
        """What the turn has produced so far: what the agent set, else a PartialResults."""
        if self._partial is not _UNSET:
            return self._partial
        state = self._state
        return PartialResults(
            self._latest.all(), state.iterations, state.tool_calls, state.total_spend_usd, state.total_tokens
        )

    @partial.setter
    def partial(self, partial: object) -> None:
        self._partial = partial

    def stop_reason(self) -> str | None:
        """Why the guard stopped the turn, if it did."""
        return self._stopped_by

    def tighten(self, limits: Limits, max_calls: Mapping[str, int] | None = None) -> None:
        """Put further limits on the turn, and on its calls of single tools."""
        self._budget.tighten(limits, max_calls)

    def remaining_seconds(self) -> float | None:
        """Seconds until a time limit is reached; None without one."""
        return self._budget.remaining_seconds()

    # The end

    def judge(self, turn: object, *, may_await: bool) -> Awaitable[str | None] | str | None:
        """Ask whether the turn did what the user asked. See ``turnwatch.core.guard.Guard``."""
        return self._goal.ask(turn, may_await=may_await)

    def end(self) -> None:
        """The turn is over: its time stops counting, and the results kept for ``partial`` are let go."""
        try:
            self._budget.close()
            self._latest.forget()
        except Exception:
            self._watch.internal_error("the end of a turn's guard")

    # Shared by the above

    def _stop(self, stop: TurnStopped | None) -> None:
        if stop is None and self._fail_closed and self._watch.faults != self._faults_before:
            stop = TurnStopped("turnwatch failed inside, and fail_closed is set", stop_reason="error")
        if stop is None:
            return
        stop.partial = self.partial
        if self._stopped_by is None:
            self._stopped_by = stop.stop_reason
            try:
                self._watch.count("agent_guard_stops_total", self._state.series.label, stop.stop_reason)
            except Exception:
                self._watch.internal_error("counting a stop")
        raise stop

"""May this turn go on? Asked before every model call and every tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, final

from turnwatch.core.account import Account, BudgetWarning, Refusal, Reservation
from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.guard import Judge, KillStore, Page, Response
from turnwatch.core.limits import NO_LIMITS, AssumedPrice, LimitName, Limits
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.errors import BudgetExceeded, ConversationKilled, ToolBudgetExceeded, TurnStopped
from turnwatch.guards.goal import GoalCheck
from turnwatch.guards.nudge import nudge_text
from turnwatch.guards.partial import LatestResults, PartialResults
from turnwatch.guards.refusals import refused, stuck
from turnwatch.guards.responses import Steps

_UNSET: Final = object()
_OF_TOOL_CALLS: Final[tuple[LimitName, ...]] = ("max_tool_calls", "max_seconds")
_OF_MODEL_CALLS: Final[tuple[LimitName, ...]] = ("max_iterations", "max_seconds", "max_usd", "max_tokens")
# Two threads may read the clock in one order and use it in the other.
_CLOCK_SLACK_SECONDS: Final = 1.0
# Any usage will do to see whether a model has a price and whether that is zero.
_SOME_USAGE: Final = Usage(input=1_000_000, output=1_000_000)


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
        kills: Where kill flags are looked up.
        fail_closed: What a fault does.
    """

    __slots__ = (
        "_account",
        "_calls_of_tool",
        "_closed",
        "_due",
        "_fail_closed",
        "_faults_before",
        "_goal",
        "_kill_id",
        "_kills",
        "_last_clock",
        "_latest",
        "_max_calls",
        "_nudge",
        "_nudged_at_iteration",
        "_on_warning",
        "_pager",
        "_partial",
        "_reservations",
        "_shadowed",
        "_state",
        "_steps",
        "_stopped_by",
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
    ) -> None:
        self._state = state
        self._watch = watch = state.watch
        self._steps = Steps(on_loop)
        self._on_warning = on_warning
        self._goal = GoalCheck(goal, state)
        self._pager = pager
        self._kills = kills
        self._kill_id = state.conversation_id or state.turn_id
        self._fail_closed = fail_closed
        self._faults_before = watch.faults
        self._last_clock = state.started
        self._latest = LatestResults()
        self._partial: object = _UNSET
        self._reservations: dict[ModelCall, tuple[Reservation, Usage | float | None]] = {}
        self._calls_of_tool: dict[str, int] = {}
        self._max_calls = {
            tool: override.max_calls
            for tool, override in watch.settings.tools.overrides.items()
            if override.max_calls is not None
        }
        self._due: TurnStopped | None = None
        self._nudge: str | None = None
        self._nudged_at_iteration = -1
        self._shadowed = False
        self._stopped_by: str | None = None
        self._closed = False
        with watch.lock:
            above: list[Account] = []
            if state.parent is not None and isinstance(state.parent.guard, TurnGuard):
                above.append(state.parent.guard._account)
            if state.conversation is not None:
                if conversation_limits is not None:
                    state.conversation.account.limits = conversation_limits
                above.append(state.conversation.account)
            self._account: Account = Account(limits, above=tuple(above))
            self._account.open_turn(state.started)

    # Whether a call may start

    def before_model(self, call: ModelCall, reserve: Usage | float | None = None) -> None:
        """Admit a model call. See ``turnwatch.core.guard.Guard``."""
        stop: TurnStopped | None = None
        try:
            stop = self._what_stops_everything() or self._what_stops_model(call, reserve)
            self._warn()
        except Exception:
            self._watch.internal_error("a model call's guard")
        try:
            self._stop(stop)
        except TurnStopped:
            reservation, _ = self._reservations.pop(call, (None, None))
            if reservation is not None:  # admitted, and then a fault closed the way
                with self._watch.lock:
                    Account.settle(reservation, 0.0, 0)
            raise

    def before_tool(self, call: ToolCall) -> None:
        """Admit a tool call. See ``turnwatch.core.guard.Guard``."""
        stop: TurnStopped | None = None
        try:
            stop = self._what_stops_everything() or self._what_stops_tool(call)
            self._warn(_OF_TOOL_CALLS)
        except Exception:
            self._watch.internal_error("a tool call's guard")
        try:
            self._stop(stop)
        except TurnStopped as stopped:
            call.outcome, call.error_type = "denied", type(stopped).__name__
            raise

    def _what_stops_everything(self) -> TurnStopped | None:
        if self._kills is not None and self._kills.is_killed(self._kill_id):
            return ConversationKilled("this conversation was killed", partial=self.partial)
        due = self._due
        if due is not None:
            # A fresh one: an exception that is raised twice grows a traceback of both places.
            return type(due)(str(due), stop_reason=due.stop_reason, partial=self.partial, details=due.details)
        return None

    def _what_stops_model(self, call: ModelCall, reserve: Usage | float | None) -> TurnStopped | None:
        policy = self._unpriced_policy()
        if policy == "block" and self._price(call, _SOME_USAGE) is None:
            return BudgetExceeded(
                "the model has no known price, and unpriced models are blocked under this dollar limit (max_usd)",
                partial=self.partial,
                details={"limit": "max_usd"},
            )
        usd, tokens = self._most_it_may_use(call, reserve, policy)
        now = self._now()
        with self._watch.lock:
            admitted = self._account.reserve(now, usd, tokens)
        if isinstance(admitted, Refusal):
            return refused(admitted, self.partial)
        self._reservations[call] = (admitted, reserve)
        return None

    def _what_stops_tool(self, call: ToolCall) -> TurnStopped | None:
        allowed = self._max_calls.get(call.tool)
        now = self._now()
        with self._watch.lock:
            refusal = self._account.admit_tool(now)
            if refusal is None and allowed is not None:
                used = self._calls_of_tool[call.tool] = self._calls_of_tool.get(call.tool, 0) + 1
                if used > allowed:
                    return ToolBudgetExceeded(
                        f"the turn is at its limit: {allowed} calls of {call.tool} are allowed, "
                        "all are used (max_calls)",
                        partial=self.partial,
                        details={"limit": "max_calls", "tool": call.tool, "allowed": allowed},
                    )
        return None if refusal is None else refused(refusal, self.partial)

    def _most_it_may_use(
        self, call: ModelCall, reserve: Usage | float | None, policy: str | AssumedPrice | None
    ) -> tuple[float | None, int | None]:
        """Dollars and tokens to hold back; None where unknown."""
        if isinstance(reserve, Usage):
            return (None if policy is None else self._price(call, reserve, policy)), reserve.total
        if reserve is not None or policy is None:
            return reserve, None
        # A model that is free passes an exhausted budget.
        return (0.0 if self._price(call, _SOME_USAGE, policy) == 0 else None), None

    def _price(self, call: ModelCall, usage: Usage, policy: str | AssumedPrice | None = None) -> float | None:
        price = self._watch.prices.cost(call.provider, call.model, usage, call.started)
        return policy.cost(usage) if price is None and isinstance(policy, AssumedPrice) else price

    def _unpriced_policy(self) -> str | AssumedPrice | None:
        """What is done about unpriced models, the strictest of all accounts; None where no dollars are limited."""
        limits = NO_LIMITS
        for account in self._account.chain:
            if account.limits.max_usd is not None:
                limits = limits.tightened(account.limits)
        return None if limits.max_usd is None else limits.unpriced

    # What came of it

    def after_model(self, call: ModelCall, verdict: Verdict | None) -> None:
        """Settle a model call. See ``turnwatch.core.guard.Guard``."""
        try:
            self._settle(call)
            if verdict is not None and verdict.severity == "stuck":
                self._respond(verdict)
            self._warn()
        except Exception:
            self._watch.internal_error("a model call's guard")

    def _settle(self, call: ModelCall) -> None:
        reservation, reserve = self._reservations.pop(call, (None, None))
        if reservation is None:
            return
        usd, tokens = reservation.usd, reservation.tokens  # what a fault below leaves charged
        try:
            usd, tokens = self._what_it_used(call, reserve)
        finally:
            with self._watch.lock:
                Account.settle(reservation, usd, tokens)

    def _what_it_used(self, call: ModelCall, reserve: Usage | float | None) -> tuple[float, int]:
        usage, usd = call.usage, call.spend_usd
        if usage is None and call.outcome != "error":
            # It ran and did not say what it used: what was held back is the best guess, and the safe one.
            if isinstance(reserve, Usage):
                usage = reserve
            elif usd is None and reserve is not None:
                usd = reserve
        if usd is None and usage is not None:
            usd = self._price(call, usage, self._unpriced_policy())
        return usd or 0.0, usage.total if usage is not None else 0

    def after_tool(self, call: ToolCall, verdict: Verdict | None, result: object = None) -> None:
        """Note a tool call's result. See ``turnwatch.core.guard.Guard``."""
        stop: TurnStopped | None = None
        went_well = call.outcome == "ok" or call.outcome == "cached"
        try:
            if went_well:
                self._latest.add(call.tool, result)
            if verdict is not None and verdict.severity == "stuck":
                self._respond(verdict)
            elif self._state.still_stuck and self._state.verdict is not None:
                self._respond(self._state.verdict)
            if self._due is not None:
                stop = self._what_stops_everything()
        except Exception:
            self._watch.internal_error("a tool call's guard")
        if went_well:
            self._stop(stop)

    # What is done about a loop

    def _respond(self, verdict: Verdict) -> None:
        if self._nudged_at_iteration >= 0 and self._state.iterations == self._nudged_at_iteration > 0:
            return  # calls of the same model reply: it has not seen the nudge yet
        for step in self._steps.take():
            if step == "stop":
                self._due = stuck(verdict)
            elif step == "nudge":
                self._nudge = nudge_text(verdict)
                self._nudged_at_iteration = self._state.iterations
            elif step == "page":
                self._page(verdict)
            elif not self._shadowed:
                self._shadowed = True
                self._watch.count("agent_guard_shadow_stops_total", self._state.series.label, "loop_detected")

    def _page(self, verdict: Verdict) -> None:
        state = self._state
        if self._pager is None:
            self._watch.internal_error("a page with no address: set page.alertmanager_url or page.webhook_url")
            return
        self._pager(
            Page(
                agent=state.agent,
                tool=verdict.tool,
                kind=verdict.kind,
                severity=verdict.severity,
                reason=verdict.reason,
                conversation_id=state.conversation_id,
                turn_id=state.turn_id,
            )
        )

    def take_nudge(self) -> str | None:
        """The message for the model, once."""
        nudge, self._nudge = self._nudge, None
        return nudge

    # What is told

    @property
    def account(self) -> Account:
        """What the turn has used of its limits."""
        return self._account

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
        with self._watch.lock:
            self._account.limits = self._account.limits.tightened(limits)
            for tool, allowed in (max_calls or {}).items():
                self._max_calls[tool] = min(allowed, self._max_calls.get(tool, allowed))

    def remaining_seconds(self) -> float | None:
        """Seconds until a time limit is reached; None without one."""
        left = [
            account.limits.max_seconds - account.seconds(self._last_clock)
            for account in self._account.chain
            if account.limits.max_seconds is not None
        ]
        return max(0.0, min(left)) if left else None

    # The end

    def judge(self, turn: object, *, may_await: bool) -> Awaitable[str | None] | str | None:
        """Ask whether the turn did what the user asked. See ``turnwatch.core.guard.Guard``."""
        return self._goal.ask(turn, may_await=may_await)

    def end(self) -> None:
        """The turn is over: its time stops counting, and the results kept for ``partial`` are let go."""
        try:
            now = self._now()
            with self._watch.lock:
                if self._closed:
                    return
                self._closed = True
                self._account.close_turn(now)
            self._latest.forget()
        except Exception:
            self._watch.internal_error("the end of a turn's guard")

    # Shared by the above

    def _now(self) -> float:
        now = self._watch.clock()
        if now < self._last_clock - _CLOCK_SLACK_SECONDS:
            self._watch.internal_error("the clock, which went backwards")
        self._last_clock = max(now, self._last_clock)
        return self._last_clock

    def _warn(self, limits: tuple[LimitName, ...] = _OF_MODEL_CALLS) -> None:
        with self._watch.lock:
            passed = self._account.warnings(self._last_clock, limits)
            for warning in passed:
                limit = warning.limit if warning.scope == "turn" else f"conversation_{warning.limit}"
                self._watch.meter.counter("agent_budget_warnings_total", self._state.series.label, limit).inc()
        if self._on_warning is not None:
            for warning in passed:
                self._on_warning(
                    BudgetWarning(
                        warning.limit,
                        warning.scope,
                        warning.percent,
                        warning.used,
                        warning.allowed,
                        self._state.agent,
                        self._state.conversation_id,
                    )
                )

    def _stop(self, stop: TurnStopped | None) -> None:
        if stop is None and self._fail_closed and self._watch.faults != self._faults_before:
            stop = TurnStopped(
                "turnwatch failed inside, and fail_closed is set", stop_reason="error", partial=self.partial
            )
        if stop is None:
            return
        if self._stopped_by is None:
            self._stopped_by = stop.stop_reason
            try:
                self._watch.count("agent_guard_stops_total", self._state.series.label, stop.stop_reason)
            except Exception:
                self._watch.internal_error("counting a stop")
        raise stop

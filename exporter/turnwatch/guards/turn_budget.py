"""May this turn afford this call? Its own limits, those of the turns above it and of its conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from turnwatch.core.account import Account, BudgetWarning, Refusal, Reservation
from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.limits import NO_LIMITS, AssumedPrice, LimitName, Limits
from turnwatch.core.quietly import Quietly
from turnwatch.core.turn import TurnState
from turnwatch.errors import BudgetExceeded, ToolBudgetExceeded, TurnStopped
from turnwatch.guards.refusals import refused

OF_TOOL_CALLS: Final[tuple[LimitName, ...]] = ("max_tool_calls", "max_seconds")
OF_MODEL_CALLS: Final[tuple[LimitName, ...]] = ("max_iterations", "max_seconds", "max_usd", "max_tokens")
# Two threads may read the clock in one order and use it in the other.
_CLOCK_SLACK_SECONDS: Final = 1.0
# Any usage will do to see whether a model has a price and whether that is zero.
_SOME_USAGE: Final = Usage(input=1_000_000, output=1_000_000)


@final
class TurnBudget:
    """What one turn has used of what it may. Thread-safe.

    Args:
        state: The turn.
        limits: Of the turn; its child turns pay from them too.
        conversation_limits: Of the turn's conversation, where it has one.
        parent: The account of the turn above, which pays along.
        on_warning: Told when 50, 80 and 100 percent of a limit are used.

    Attributes:
        account: The turn's own, with those above it in its chain.
    """

    __slots__ = (
        "_calls_of_tool",
        "_closed",
        "_last_clock",
        "_max_calls",
        "_on_warning",
        "_running",
        "_state",
        "_watch",
        "account",
    )

    def __init__(
        self,
        state: TurnState,
        limits: Limits,
        conversation_limits: Limits | None,
        parent: Account | None,
        on_warning: Callable[[BudgetWarning], None] | None,
    ) -> None:
        self._state = state
        self._watch = watch = state.watch
        self._on_warning = on_warning
        self._last_clock = state.started
        self._running: dict[ModelCall, tuple[Reservation, Usage | float | None]] = {}
        self._calls_of_tool: dict[str, int] = {}
        self._max_calls = {
            tool: override.max_calls
            for tool, override in watch.settings.tools.overrides.items()
            if override.max_calls is not None
        }
        self._closed = False
        with watch.lock:
            above = [] if parent is None else [parent]
            if state.conversation is not None:
                if conversation_limits is not None:
                    state.conversation.account.limits = conversation_limits
                above.append(state.conversation.account)
            self.account: Account = Account(limits, above=tuple(above))
            self.account.open_turn(state.started)

    # Before a call

    def admit_model(self, call: ModelCall, reserve: Usage | float | None) -> TurnStopped | None:
        """Count a model call and hold back what it may use, or say why it must not start.

        Args:
            call: The call.
            reserve: The most it may use, tokens or dollars; None when that is not known.
        """
        policy = self._unpriced_policy()
        if policy == "block" and self._price(call, _SOME_USAGE) is None:
            return BudgetExceeded(
                "the model has no known price, and unpriced models are blocked under this dollar limit (max_usd)",
                details={"limit": "max_usd"},
            )
        usd, tokens = self._most_it_may_use(call, reserve, policy)
        now = self._now()
        with self._watch.lock:
            admitted = self.account.reserve(now, usd, tokens)
        if isinstance(admitted, Refusal):
            return refused(admitted)
        self._running[call] = (admitted, reserve)
        return None

    def admit_tool(self, call: ToolCall) -> TurnStopped | None:
        """Count a tool call, or say why it must not start."""
        allowed = self._max_calls.get(call.tool)
        now = self._now()
        with self._watch.lock:
            refusal = self.account.admit_tool(now)
            if refusal is None and allowed is not None:
                used = self._calls_of_tool[call.tool] = self._calls_of_tool.get(call.tool, 0) + 1
                if used > allowed:
                    return ToolBudgetExceeded(
                        f"the turn is at its limit: {allowed} calls of {call.tool} are allowed, "
                        "all are used (max_calls)",
                        details={"limit": "max_calls", "tool": call.tool, "allowed": allowed},
                    )
        return None if refusal is None else refused(refusal)

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
        for account in self.account.chain:
            if account.limits.max_usd is not None:
                limits = limits.tightened(account.limits)
        return None if limits.max_usd is None else limits.unpriced

    # After a model call

    def settle(self, call: ModelCall) -> None:
        """Charge an admitted model call with what it did use."""
        reservation, reserve = self._running.pop(call, (None, None))
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

    def did_not_start(self, call: ModelCall) -> None:
        """An admitted model call was refused after all."""
        reservation, _ = self._running.pop(call, (None, None))
        if reservation is not None:
            with self._watch.lock:
                Account.settle(reservation, 0.0, 0)

    # Warnings and time

    def warn(self, limits: tuple[LimitName, ...]) -> None:
        """Tell of what has been passed of these limits. A callback that raises is counted."""
        with self._watch.lock:
            passed = self.account.warnings(self._last_clock, limits)
            for warning in passed:
                limit = warning.limit if warning.scope == "turn" else f"conversation_{warning.limit}"
                self._watch.meter.counter("agent_budget_warnings_total", self._state.series.label, limit).inc()
        if self._on_warning is None:
            return
        for warning in passed:
            with Quietly(self._watch, "a budget warning's callback"):
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

    def tighten(self, limits: Limits, max_calls: Mapping[str, int] | None) -> None:
        """Put further limits on the turn, and on its calls of single tools."""
        with self._watch.lock:
            self.account.limits = self.account.limits.tightened(limits)
            for tool, allowed in (max_calls or {}).items():
                self._max_calls[tool] = min(allowed, self._max_calls.get(tool, allowed))

    def remaining_seconds(self) -> float | None:
        """Seconds until a time limit is reached; None without one."""
        if all(account.limits.max_seconds is None for account in self.account.chain):
            return None
        now = self._now()
        left = [
            account.limits.max_seconds - account.seconds(now)
            for account in self.account.chain
            if account.limits.max_seconds is not None
        ]
        return max(0.0, min(left))

    def _now(self) -> float:
        now = self._watch.clock()
        if now < self._last_clock - _CLOCK_SLACK_SECONDS:
            self._watch.internal_error("the clock, which went backwards")
        self._last_clock = max(now, self._last_clock)
        return self._last_clock

    def close(self) -> None:
        """The turn is over: its time stops counting, and nothing is held back for calls that nobody has ended.

        Such a call is charged when it does end.
        """
        now = self._now()
        with self._watch.lock:
            if self._closed:
                return
            self._closed = True
            self.account.close_turn(now)
            for reservation, _ in list(self._running.values()):
                Account.release(reservation)

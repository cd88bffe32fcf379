"""How a refused call is told to the agent's code: which exception, in which words."""

from __future__ import annotations

from typing import Final

from turnwatch.core.account import Refusal
from turnwatch.core.limits import LimitName
from turnwatch.core.verdict import Verdict
from turnwatch.errors import (
    BudgetExceeded,
    LoopDetected,
    StepLimitExceeded,
    TimeLimitExceeded,
    ToolBudgetExceeded,
    TurnStopped,
)

_KINDS: Final[dict[LimitName, tuple[type[TurnStopped], str, str]]] = {
    "max_iterations": (StepLimitExceeded, "max_iterations", "{allowed:g} model calls are allowed, all are used"),
    "max_tool_calls": (ToolBudgetExceeded, "max_tool_calls", "{allowed:g} tool calls are allowed, all are used"),
    "max_seconds": (TimeLimitExceeded, "max_seconds", "{allowed:g} seconds are allowed, {used:.1f} have passed"),
    "max_usd": (BudgetExceeded, "max_usd", "${allowed:.4g} are allowed, ${used:.4f} are spent or held back"),
    "max_tokens": (
        BudgetExceeded,
        "max_turn_tokens",
        "{allowed:,.0f} tokens are allowed, {used:,.0f} are used or held back",
    ),
}


def refused(refusal: Refusal, whose: str | None = None) -> TurnStopped:
    """The exception for a limit that is used up.

    Args:
        refusal: The limit.
        whose: What is at its limit, in words, where that is neither a turn nor a conversation.
    """
    whose = whose or refusal.scope
    kind, stop_reason, words = _KINDS[refusal.limit]
    numbers = words.format(allowed=refusal.allowed, used=refusal.used)
    return kind(
        f"the {whose} is at its limit: {numbers} ({refusal.limit})",
        stop_reason=stop_reason,
        details={
            "limit": refusal.limit,
            "scope": whose,
            "used": refusal.used,
            "allowed": refusal.allowed,
        },
    )


def stuck(verdict: Verdict) -> LoopDetected:
    """The exception for a turn that makes no progress."""
    return LoopDetected(
        verdict.reason,
        details={
            "kind": verdict.kind,
            "tool": verdict.tool,
            "first_call": verdict.first_call,
            "detected_call": verdict.detected_call,
        },
    )

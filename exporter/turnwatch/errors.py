"""Everything turnwatch raises on purpose."""

from __future__ import annotations

from collections.abc import Mapping


class TurnwatchError(Exception):
    """Base of every error that turnwatch raises."""


class SettingsError(TurnwatchError):
    """A setting is unknown or has the wrong type. The message names the key, what is allowed, and the file and line."""


class MissingExtraError(TurnwatchError, ImportError):
    """An optional part is used without its dependencies. The message names the extra."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional part: pip install 'turnwatch[{extra}]'")
        self.feature = feature
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        """For another process: an exception is made anew there from what it was made of."""
        return type(self), (self.feature, self.extra)


class TurnStopped(TurnwatchError):
    """A guard ended the turn.

    Attributes:
        stop_reason: One of the closed set of stop reasons (``turnwatch.core.events.STOP_REASONS``).
        partial: What the turn had produced when it was stopped, or None.
        details: Names and numbers that belong to the stop: the limit and what was used of it, or the loop's kind,
            tool and call numbers. Never arguments or results.
    """

    stop_reason = "unknown"

    def __init__(
        self,
        message: str = "",
        *,
        stop_reason: str | None = None,
        partial: object = None,
        details: Mapping[str, str | float] | None = None,
    ) -> None:
        super().__init__(message)
        if stop_reason is not None:
            self.stop_reason = stop_reason
        self.partial = partial
        self.details: dict[str, str | float] = dict(details or {})

    def to_dict(self) -> dict[str, str | float]:
        """The stop as a structured error, for an answer to the agent's caller; ``partial`` is not in it."""
        return {"error": type(self).__name__, "stop_reason": self.stop_reason, "message": str(self), **self.details}


class LoopDetected(TurnStopped):
    """The agent repeats itself without progress."""

    stop_reason = "loop_detected"


class BudgetExceeded(TurnStopped):
    """The turn or conversation has spent its dollars or tokens."""

    stop_reason = "max_usd"


class StepLimitExceeded(TurnStopped):
    """The turn or conversation has used up its model calls."""

    stop_reason = "max_iterations"


class ToolBudgetExceeded(TurnStopped):
    """The turn or conversation has used up its tool calls."""

    stop_reason = "max_tool_calls"


class TimeLimitExceeded(TurnStopped):
    """The turn has run for longer than it may."""

    stop_reason = "max_seconds"


class ConversationKilled(TurnStopped):
    """Somebody killed this conversation."""

    stop_reason = "killed"


class UnknownToolError(TurnwatchError, LookupError):
    """The agent asked for a tool that the gateway does not have. The turn goes on."""


class SideEffectHeld(TurnwatchError):
    """A call that may already have changed something is not sent again without the caller's word. The turn goes on."""


SelfLoopDetected = LoopDetected
ToolSpamDetected = ToolBudgetExceeded

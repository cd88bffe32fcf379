"""The events that every source turns its input into: tool calls and model calls."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Literal, final

if TYPE_CHECKING:
    from turnwatch.core.evidence import Evidence

Outcome = Literal["ok", "error", "cached", "denied"]

STOP_REASONS: Final = (
    "final_answer",
    "max_iterations",
    "max_tool_calls",
    "max_seconds",
    "max_usd",
    "max_turn_tokens",
    "loop_detected",
    "killed",
    "goal_failed",
    "error",
    "user_cancelled",
    "evicted",
    "unknown",
)


class Missing(enum.Enum):
    """The type of MISSING: a value that was not captured, which is not the same as empty."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


@final
class ToolCall:
    """One request of the agent to run a tool, and what came of it.

    Lives only while the call is being recorded: turn state keeps counts and digests, not this.

    Attributes:
        tool: The tool's name as the agent asked for it.
        args: The arguments, any object, or JSON text; MISSING when the source did not capture them.
        canonical: The canonical form of the arguments while the call runs: they may be changed meanwhile.
        identity: What the engine takes the call for while it is judged.
        input_hash: ``turnwatch.input_hash(tool, args)``, or None when the arguments are missing.
        result: Evidence of the result, or of the error text when outcome is "error"; None when unknown.
        outcome: "ok", "error", "cached" (answered without running) or "denied" (refused by a guard).
        error_type: Low-cardinality class of the error (exception class, status code), when there is one.
        started, ended: Seconds since the epoch; None when unknown.
        call_id: The model's id for this call, when it gave one.
        round: Calls asked for in one model reply share a round; None when unknown.
        agent: The agent that made the call, when several share a turn or conversation.
        read_only, destructive, idempotent, polling: What the tool's declaration says (MCP annotations or
            settings); None when it does not say. ``mutates`` True or False says outright whether this
            call changed state.
        line: Where it stands in the file that it was read from (1-based); None when it comes from no line of a file.
    """

    __slots__ = (
        "agent",
        "args",
        "call_id",
        "canonical",
        "destructive",
        "ended",
        "error_type",
        "idempotent",
        "identity",
        "input_hash",
        "line",
        "mutates",
        "outcome",
        "polling",
        "read_only",
        "result",
        "round",
        "started",
        "tool",
    )

    def __init__(
        self,
        tool: str,
        args: object = MISSING,
        *,
        input_hash: str | None = None,
        result: Evidence | None = None,
        outcome: Outcome = "ok",
        error_type: str | None = None,
        started: float | None = None,
        ended: float | None = None,
        call_id: str | None = None,
        round: int | None = None,
        agent: str = "",
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        polling: bool | None = None,
        mutates: bool | None = None,
        line: int | None = None,
    ) -> None:
        self.tool = tool
        self.args = args
        self.canonical: bytes | None = None
        self.identity: int | None = None
        self.input_hash = input_hash
        self.result = result
        self.outcome: Outcome = outcome
        self.error_type = error_type
        self.started = started
        self.ended = ended
        self.call_id = call_id
        self.round = round
        self.agent = agent
        self.read_only = read_only
        self.destructive = destructive
        self.idempotent = idempotent
        self.polling = polling
        self.mutates = mutates
        self.line = line


@final
class Usage:
    """Tokens of one model call, in the convention of OpenTelemetry: input includes cached tokens.

    Attributes:
        input: All input tokens, cache reads and writes included.
        output: All output tokens, reasoning included.
        cache_read, cache_write: The part of input read from or written to the provider's prompt cache.
        reasoning: The part of output spent on reasoning.
    """

    __slots__ = ("cache_read", "cache_write", "input", "output", "reasoning")

    def __init__(
        self, input: int = 0, output: int = 0, cache_read: int = 0, cache_write: int = 0, reasoning: int = 0
    ) -> None:
        self.input = input
        self.output = output
        self.cache_read = cache_read
        self.cache_write = cache_write
        self.reasoning = reasoning

    @property
    def total(self) -> int:
        """Input and output tokens together."""
        return self.input + self.output

    def add(self, other: Usage) -> None:
        """Add the tokens of another call."""
        self.input += other.input
        self.output += other.output
        self.cache_read += other.cache_read
        self.cache_write += other.cache_write
        self.reasoning += other.reasoning

    def _values(self) -> tuple[int, int, int, int, int]:
        return (self.input, self.output, self.cache_read, self.cache_write, self.reasoning)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Usage) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return "Usage(input={}, output={}, cache_read={}, cache_write={}, reasoning={})".format(*self._values())


@final
class ModelCall:
    """One request to a model, failed ones included.

    Attributes:
        model: The model that answered, or was asked when no answer came; "" when unknown.
        provider: The provider's id as the source gave it ("openai", "aws.bedrock"); "" when unknown.
        usage: Tokens, or None when the source did not report them.
        spend_usd: Dollars the caller already knows; None to have them computed from usage.
        outcome: "ok" or "error".
        started, ended: Seconds since the epoch; None when unknown.
        text: Evidence of the text reply where it made no tool call, for monologues; None when unknown.
    """

    __slots__ = ("ended", "error_type", "model", "outcome", "provider", "spend_usd", "started", "text", "usage")

    def __init__(
        self,
        model: str = "",
        *,
        provider: str = "",
        usage: Usage | None = None,
        spend_usd: float | None = None,
        outcome: Outcome = "ok",
        error_type: str | None = None,
        started: float | None = None,
        ended: float | None = None,
        text: Evidence | None = None,
    ) -> None:
        self.model = model
        self.provider = provider
        self.usage = usage
        self.spend_usd = spend_usd
        self.outcome: Outcome = outcome
        self.error_type = error_type
        self.started = started
        self.ended = ended
        self.text = text

"""What a turn or a conversation may use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

from turnwatch.core.events import Usage

LimitName = Literal["max_iterations", "max_tool_calls", "max_seconds", "max_usd", "max_tokens"]

LIMIT_NAMES: Final[tuple[LimitName, ...]] = (
    "max_iterations",
    "max_tool_calls",
    "max_seconds",
    "max_usd",
    "max_tokens",
)

_WHOLE: Final = frozenset({"max_iterations", "max_tool_calls", "max_tokens"})


@dataclass(frozen=True, slots=True)
class AssumedPrice:
    """The price of a model that is on no price list, in dollars per million tokens."""

    input_usd: float
    output_usd: float

    def cost(self, usage: Usage) -> float:
        """Dollars of one call; cached tokens cost what other input does."""
        return (usage.input * self.input_usd + usage.output * self.output_usd) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one turn, or one conversation, may use, child turns included. None: no limit.

    Attributes:
        max_iterations: Model calls, failed ones included.
        max_tool_calls: Tool calls, cached and failed ones included. A cap of 64 refuses the 65th.
        max_seconds: Seconds since the turn started; of a conversation, the seconds in which a turn of it was open.
            Checked before each call: a call that has started is not interrupted.
        max_usd: Dollars of model calls.
        max_tokens: Input and output tokens of model calls.
        unpriced: What ``max_usd`` does about a model without a known price: "block" refuses it, an AssumedPrice
            counts it at that price, "allow" lets it run uncounted (agent_unpriced_model_calls_total rises).

    Raises:
        ValueError: A limit is negative or no number, or one of calls or tokens is no whole number.
    """

    max_iterations: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    max_usd: float | None = None
    max_tokens: int | None = None
    unpriced: Literal["block", "allow"] | AssumedPrice = "allow"

    def __post_init__(self) -> None:
        for name in LIMIT_NAMES:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, or None")
            if name in _WHOLE and value != int(value):
                raise ValueError(f"{name} must be a whole number, or None")
        if not isinstance(self.unpriced, AssumedPrice) and self.unpriced not in ("block", "allow"):
            raise ValueError('unpriced must be "block", "allow" or an AssumedPrice')

    def tightened(self, other: Limits) -> Limits:
        """The smaller of each limit; where dollars are limited, the stricter policy of the two."""
        if other is self or other == NO_LIMITS:
            return self
        if self == NO_LIMITS:
            return other
        policies = [limits.unpriced for limits in (self, other) if limits.max_usd is not None] or [self.unpriced]
        smaller: dict[str, Any] = {name: _smaller(getattr(self, name), getattr(other, name)) for name in LIMIT_NAMES}
        return Limits(**smaller, unpriced=max(policies, key=_strictness))

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not None for name in LIMIT_NAMES)


def _smaller(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _strictness(policy: Literal["block", "allow"] | AssumedPrice) -> int:
    return {"allow": 0, "block": 2}.get(policy, 1) if isinstance(policy, str) else 1


NO_LIMITS: Final = Limits()

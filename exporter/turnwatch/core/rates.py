"""What tokens cost under one set of prices."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple, Protocol, final

from turnwatch.core.events import Usage

# Money is counted in whole 1e-15 dollars, so that a turn's dollars are exact to the published price: a price of
# 0.075 USD per million tokens is 75,000,000 of them per token, and sums of floats would drift.
UNITS_PER_USD: Final = 10**15
_PER_MILLION: Final = UNITS_PER_USD // 10**6
_PER_THOUSAND: Final = UNITS_PER_USD // 10**3


class TokenPrices(NamedTuple):
    """USD per million tokens; ``request`` is USD per thousand calls. None: charged like the whole it is part of."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    reasoning: Decimal | None = None
    request: Decimal = Decimal(0)


class Price(Protocol):
    """What a price list holds for a model."""

    def rates(self, at: float) -> Rates:
        """The rates for a request made at this time, in seconds since the epoch."""


@final
class Rates:
    """Prices by the size of the request.

    Args:
        base: Prices of an ordinary request.
        tiers: (tokens, prices) for requests with more input tokens than that; they apply to all of the
            request's tokens, as providers bill.
    """

    __slots__ = ("_base", "_tiers")

    def __init__(self, base: TokenPrices, tiers: Sequence[tuple[int, TokenPrices]] = ()) -> None:
        self._base = _units(base)
        self._tiers = [(start, _units(prices)) for start, prices in sorted(tiers, key=lambda tier: tier[0])]

    def dollars(self, usage: Usage) -> float:
        """The price of one call."""
        tokens, read, write, output = usage.input, usage.cache_read, usage.cache_write, usage.output
        if read + write > tokens:  # Anthropic's own convention: input leaves the cached tokens out
            tokens += read + write
        rates = self._base
        for start, tier in self._tiers:
            if tokens > start:
                rates = tier
        reasoning = min(usage.reasoning, output)
        units = (
            (tokens - read - write) * rates[0]
            + (output - reasoning) * rates[1]
            + read * rates[2]
            + write * rates[3]
            + reasoning * rates[4]
            + rates[5]
        )
        return units / UNITS_PER_USD

    def rates(self, at: float) -> Rates:
        """These rates: they hold at any time."""
        return self


def _units(prices: TokenPrices) -> tuple[int, int, int, int, int, int]:
    def per_token(price: Decimal) -> int:
        return round(price * _PER_MILLION)

    return (
        per_token(prices.input),
        per_token(prices.output),
        per_token(prices.input if prices.cache_read is None else prices.cache_read),
        per_token(prices.input if prices.cache_write is None else prices.cache_write),
        per_token(prices.output if prices.reasoning is None else prices.reasoning),
        round(prices.request * _PER_THOUSAND),
    )

"""What providers publish as their prices, from genai-prices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from turnwatch.core.rates import Rates, TokenPrices

# Time-of-day prices change on whole minutes.
_SLOT_SECONDS: Final = 60


class PublishedPrice:
    """A model's published price, which may depend on the request's time."""

    __slots__ = ("_changes", "_model", "_now")

    def __init__(self, model: Any) -> None:
        self._model = model
        self._changes = isinstance(model.prices, list)
        self._now: tuple[int, Rates] | None = None

    def rates(self, at: float) -> Rates:
        """The rates for a request made at this time, in seconds since the epoch."""
        slot = int(at // _SLOT_SECONDS) if self._changes else 0
        now = self._now
        if now is None or now[0] != slot:
            start = datetime.fromtimestamp(slot * _SLOT_SECONDS, UTC)
            now = self._now = (slot, _rates_of(vars(self._model.get_prices(start))))
        return now[1]


def published_snapshot() -> Any:
    """The price data in use, or None where genai-prices is not there or broken.

    A process that runs genai-prices' UpdatePrices gets a new one when prices have changed.
    """
    return _snapshot_source()()


@functools.cache
def _snapshot_source() -> Callable[[], Any]:
    # Imported at the first model call: it takes 140 ms and 31 MB, and a process may never make one.
    try:
        from genai_prices.data_snapshot import get_snapshot

        get_snapshot()
    except Exception:
        return lambda: None
    return get_snapshot


def find_published_price(snapshot: Any, spellings: Iterable[tuple[str, str]]) -> PublishedPrice | None:
    """The price of the first (provider, model) pair that the data knows with a price for tokens.

    Asks the providers themselves and not the snapshot, which keeps every unknown name for ever.
    """
    for provider_id, name in spellings:
        model = _find_model(snapshot.providers, provider_id, name.lower())
        if model is None:
            continue
        prices = [each.prices for each in model.prices] if isinstance(model.prices, list) else [model.prices]
        if all("input_mtok" in vars(each) or "output_mtok" in vars(each) for each in prices):
            return PublishedPrice(model)
    return None


def _find_model(providers: Any, provider_id: str, name: str) -> Any:
    from genai_prices.data_snapshot import find_provider_by_id

    provider = find_provider_by_id(providers, provider_id) if provider_id else None
    if provider is not None:
        return provider.find_model(name, all_providers=providers)
    for candidate in providers:
        if candidate.model_match is not None and candidate.model_match.is_match(name):
            return candidate.find_model(name, all_providers=providers)
    return None


def _rates_of(prices: dict[str, Any]) -> Rates:
    starts = sorted({tier.start for price in prices.values() for tier in getattr(price, "tiers", ())})
    return Rates(_prices_at(prices, 0), [(start, _prices_at(prices, start + 1)) for start in starts])


def _prices_at(prices: dict[str, Any], input_tokens: int) -> TokenPrices:
    def price(*names: str) -> Decimal | None:
        for name in names:
            found = prices.get(name)
            if found is not None:
                return _tier_price(found, input_tokens)
        return None

    return TokenPrices(
        input=price("input_mtok") or Decimal(0),
        output=price("output_mtok") or Decimal(0),
        cache_read=price("cache_read_mtok"),
        cache_write=price("cache_write_mtok", "cache_write_5m_mtok"),
        reasoning=price("output_reasoning_mtok"),
        request=price("requests_kcount") or Decimal(0),
    )


def _tier_price(price: Any, input_tokens: int) -> Decimal:
    if isinstance(price, Decimal):
        return price
    found: Decimal = price.base
    for tier in price.tiers:
        if input_tokens > tier.start:
            found = tier.price
    return found

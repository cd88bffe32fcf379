"""What a model call costs.

Published prices come from genai-prices; a user's own come before them. Which entry belongs to a model is
asked once and kept, because it takes about 100 us: a turn may make thousands of calls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from turnwatch.core.events import Usage
from turnwatch.core.model_names import spellings
from turnwatch.core.price_list import PriceList
from turnwatch.core.published_prices import find_published_price, published_snapshot
from turnwatch.core.rates import Price

MAX_KEPT_MODELS: Final = 1024
MAX_NAME_LENGTH: Final = 300


class PriceBook:
    """Dollars of model calls.

    Args:
        own: The user's own prices, in USD per million tokens by the kind of token, by model name in lower case.
            They override the published ones; a price of 0 is a price.
    """

    def __init__(self, own: Mapping[str, Mapping[str, Decimal]] | None = None) -> None:
        self._own = PriceList(own) if own else None
        self._kept: dict[tuple[str, str], Price | None] = {}
        self._snapshot: object = None

    def cost(self, provider: str, model: str, usage: Usage, at: float | None = None) -> float | None:
        """Dollars of one call, exact to the price list, or None when the model's price is not known.

        Args:
            provider: The provider's id as the source gave it; "" when unknown.
            model: The model as the source gave it.
            usage: Its tokens. Where cached tokens exceed the input, the input did not include them.
            at: When the request was made, seconds since the epoch; None for now. Some prices depend on the time
                of day.

        Never raises an Exception: a fault in the price data is a price not known.
        """
        try:
            price = self._price(provider, model)
            if price is None:
                return None
            return price.rates(time.time() if at is None else at).dollars(usage)
        except Exception:
            return None

    def _price(self, provider: str, model: str) -> Price | None:
        snapshot = published_snapshot()
        if snapshot is not self._snapshot:  # genai-prices has loaded newer prices
            self._kept.clear()
            self._snapshot = snapshot
        key = (provider, model)
        try:
            return self._kept[key]
        except KeyError:
            pass
        if not model or len(model) > MAX_NAME_LENGTH or len(provider) > MAX_NAME_LENGTH:
            return None
        price: Price | None = self._own.find(provider, model) if self._own is not None else None
        if price is None and snapshot is not None:
            price = find_published_price(snapshot, spellings(provider, model))
        if len(self._kept) >= MAX_KEPT_MODELS:
            # Model names come from outside: the oldest makes room.
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[key] = price
        return price

"""Which of a user's own prices is a model's."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from turnwatch.core.model_names import bare_names
from turnwatch.core.rates import Rates, TokenPrices


class PriceList:
    """Prices by model name.

    Args:
        prices: USD per million tokens by the kind of token, by model name in lower case: what a price file says.
    """

    def __init__(self, prices: Mapping[str, Mapping[str, Decimal]]) -> None:
        self._prices = prices

    def find(self, provider: str, model: str) -> Rates | None:
        """The price of a model, by its exact name first and then without prefixes and dates."""
        for name in (f"{provider}/{model}".lower(), model.lower(), *bare_names(provider, model)):
            found = self._prices.get(name)
            if found is not None:
                return Rates(TokenPrices(**found))
        return None

"""Have these dollars been spent? One number, for a loop that has nothing else of turnwatch's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, final

from turnwatch.core.account import Account, Refusal
from turnwatch.core.default import default_watch
from turnwatch.core.events import Usage
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.limits import AssumedPrice, Limits
from turnwatch.core.prices import PriceBook
from turnwatch.core.usage import token_count
from turnwatch.errors import BudgetExceeded
from turnwatch.guards.refusals import refused


@final
class BudgetGate:
    """A ceiling in dollars.

    ::

        gate = BudgetGate(ceiling_usd=1.0)
        gate.charge("claude-sonnet-4-5", reply.usage.input_tokens, reply.usage.output_tokens)

    ``charge`` is for one call after another, each when its usage is known. Calls that run side by side reserve
    before they start: ``with gate.reserve("claude-sonnet-4-5", 12_000, 1_024) as call: ...``.

    Thread-safe.

    Args:
        ceiling_usd: The dollars that may be spent.
        unpriced: What is done about a model without a known price: "block" raises, an AssumedPrice counts it at
            that price, "allow" lets it pass and counts nothing.
        prices: The price list; the process's own when left out.

    Raises:
        ValueError: ``ceiling_usd`` is no number of more than 0.
    """

    def __init__(
        self,
        ceiling_usd: float,
        *,
        unpriced: Literal["block", "allow"] | AssumedPrice = "block",
        prices: PriceBook | None = None,
    ) -> None:
        if isinstance(ceiling_usd, bool) or not isinstance(ceiling_usd, int | float) or not 0 < ceiling_usd < math.inf:
            raise ValueError("ceiling_usd must be a number of more than 0")
        self.ceiling_usd = ceiling_usd
        self._account = Account(Limits(max_usd=ceiling_usd, unpriced=unpriced), "conversation")
        self._unpriced = unpriced
        self._prices = prices
        self._lock = fork_safe_lock()

    @property
    def spent_usd(self) -> float:
        """Dollars charged so far."""
        return self._account.usd

    @property
    def remaining_usd(self) -> float:
        """Dollars left; never below 0."""
        return max(0.0, self.ceiling_usd - self._account.usd)

    def charge(self, model: str, in_tokens: int, out_tokens: int) -> float:
        """Add what a call did cost.

        The call is charged in any case: the money is gone. One that costs nothing passes an exhausted budget.

        Returns:
            Its dollars.

        Raises:
            BudgetExceeded: The ceiling is reached, so the next call must not be made; or the model has no known
                price.
        """
        usage = Usage(token_count(in_tokens) or 0, token_count(out_tokens) or 0)
        cost = self._cost(model, usage)
        with self._lock:
            reservation = self._account.reserve(0.0, 0.0)
            assert not isinstance(reservation, Refusal)  # nothing is held back, so nothing forbids it
            Account.settle(reservation, cost, usage.total)
            exceeded = cost > 0 and self._account.used_up
        if exceeded:
            raise BudgetExceeded(
                f"${self.spent_usd:.4f} spent, ${self.ceiling_usd:.4g} allowed (max_usd)",
                details={"limit": "max_usd", "used": self.spent_usd, "allowed": self.ceiling_usd},
            )
        return cost

    @contextmanager
    def reserve(self, model: str, in_tokens: int, max_out_tokens: int) -> Iterator[Settlement]:
        """Hold back what a call may cost at most, while it runs.

        Leaving the block charges what ``settle`` was told; without that, what was held back, and nothing when
        the block raised.

        Raises:
            BudgetExceeded: It does not fit; nothing is charged. Or the model has no known price.
        """
        most = Usage(in_tokens, max_out_tokens)
        with self._lock:
            admitted = self._account.reserve(0.0, self._cost(model, most), most.total)
        if isinstance(admitted, Refusal):
            raise refused(admitted, "budget")
        settlement = Settlement()
        failed = True
        try:
            yield settlement
            failed = False
        finally:
            used = settlement.used or (Usage() if failed else most)
            with self._lock:
                Account.settle(admitted, self._cost(model, used), used.total)

    def _cost(self, model: str, usage: Usage) -> float:
        prices = self._prices or default_watch().prices
        cost = prices.cost("", model, usage)
        if cost is not None:
            return cost
        if isinstance(self._unpriced, AssumedPrice):
            return self._unpriced.cost(usage)
        if self._unpriced == "allow" or not usage.total:
            return 0.0
        raise BudgetExceeded("the model has no known price, and unpriced models are blocked (max_usd)")


@final
class Settlement:
    """What a reserved call did use."""

    def __init__(self) -> None:
        self.used: Usage | None = None

    def settle(self, in_tokens: int, out_tokens: int) -> None:
        """Say what the call used."""
        self.used = Usage(in_tokens, out_tokens)

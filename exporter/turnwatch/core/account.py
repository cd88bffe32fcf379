"""What a turn or a conversation has used of what it may.

Checked before the spend: a call is admitted with the most it may cost held back (reserve), and charged with what
it did cost when that is known (settle). What is held back counts as used, so that parallel calls cannot all start
on the same last dollar.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, final

from turnwatch.core.limits import LIMIT_NAMES, NO_LIMITS, LimitName, Limits

Scope = Literal["turn", "conversation"]

WARNING_PERCENTS: Final = (50, 80, 100)

# Dollars are added up as whole numbers of billionths: ten dimes are a dollar, in whatever order they come.
_NANO: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call may not start.

    Attributes:
        limit: The limit that is used up, or that the call would pass.
        scope: Whose limit it is.
        used: What was used before, what is held back for running calls included.
        allowed: The limit.
    """

    limit: LimitName
    scope: Scope
    used: float
    allowed: float


@dataclass(frozen=True, slots=True)
class BudgetWarning:
    """Half, four fifths or all of a limit is used. Each is said once a turn or conversation.

    Attributes:
        limit: Which limit.
        scope: Whose limit it is.
        percent: 50, 80 or 100.
        used, allowed: In the limit's own unit: calls, seconds, dollars or tokens.
        agent: The agent whose call passed it.
        conversation_id: Its conversation, if it has one.
    """

    limit: LimitName
    scope: Scope
    percent: int
    used: float
    allowed: float
    agent: str = ""
    conversation_id: str | None = None


@final
class Reservation:
    """What is held back for one model call, until it is settled."""

    __slots__ = ("accounts", "nano_usd", "open", "tokens")

    def __init__(self, accounts: tuple[Account, ...], nano_usd: int, tokens: int) -> None:
        self.accounts = accounts
        self.nano_usd = nano_usd
        self.tokens = tokens
        self.open = True

    @property
    def usd(self) -> float:
        """Dollars held back."""
        return self.nano_usd / _NANO


@final
class Account:
    """What one turn or conversation has used. Not thread-safe: whoever shares it holds a lock.

    Args:
        limits: What it may use.
        scope: "turn" or "conversation".
        above: The accounts that pay along with it: of the parent's turn, of the conversation.
    """

    __slots__ = (
        "_active_since",
        "_busy_seconds",
        "_chain",
        "_held_nano_usd",
        "_held_tokens",
        "_largest_nano_usd",
        "_largest_tokens",
        "_open_turns",
        "_warned",
        "iterations",
        "limits",
        "nano_usd",
        "scope",
        "tokens",
        "tool_calls",
    )

    def __init__(
        self,
        limits: Limits = NO_LIMITS,
        scope: Scope = "turn",
        *,
        above: tuple[Account, ...] = (),
    ) -> None:
        self.limits = limits
        self.scope = scope
        chain: list[Account] = [self]
        for account in above:
            chain.extend(one for one in account._chain if one not in chain)
        self._chain: tuple[Account, ...] = tuple(chain)
        self.iterations = 0
        self.tool_calls = 0
        self.nano_usd = 0
        self.tokens = 0
        self._held_nano_usd = 0
        self._held_tokens = 0
        self._largest_nano_usd = 0
        self._largest_tokens = 0
        self._busy_seconds = 0.0
        self._active_since = 0.0
        self._open_turns = 0
        self._warned: dict[LimitName, int] = {}

    @property
    def usd(self) -> float:
        """Dollars spent, what is held back not included."""
        return self.nano_usd / _NANO

    @property
    def used_up(self) -> bool:
        """Whether all the dollars are spent that this account's own limit allows."""
        return self.limits.max_usd is not None and self.nano_usd >= _nano(self.limits.max_usd)

    @property
    def chain(self) -> tuple[Account, ...]:
        """This account and every account above it."""
        return self._chain

    # Time

    def open_turn(self, now: float) -> None:
        """A turn that pays from this account, or from one below it, begins."""
        for account in self._chain:
            if not account._open_turns:
                account._active_since = now
            account._open_turns += 1

    def close_turn(self, now: float) -> None:
        """A turn that was opened ends."""
        for account in self._chain:
            account._open_turns -= 1
            if not account._open_turns:
                account._busy_seconds += max(0.0, now - account._active_since)

    def seconds(self, now: float) -> float:
        """Seconds in which a turn was open, each counted once however many were."""
        return self._busy_seconds + (max(0.0, now - self._active_since) if self._open_turns else 0.0)

    # Calls

    def admit_tool(self, now: float) -> Refusal | None:
        """Count one more tool call on every account, or say which limit forbids it; then nothing is counted.

        A tool call costs no dollars or tokens, so an exhausted budget of those does not forbid it.
        """
        for account in self._chain:
            limits = account.limits
            if limits.max_tool_calls is not None and account.tool_calls >= limits.max_tool_calls:
                return account._refusal("max_tool_calls", now)
            if limits.max_seconds is not None and account.seconds(now) >= limits.max_seconds:
                return account._refusal("max_seconds", now)
        for account in self._chain:
            account.tool_calls += 1
        return None

    def reserve(self, now: float, usd: float | None = None, tokens: int | None = None) -> Reservation | Refusal:
        """Count one more model call and hold back what it may cost, or say which limit forbids it.

        Args:
            now: Seconds since the epoch.
            usd: The most dollars it may cost. None: not known; then it starts while anything is left and nothing
                else runs, and beside running calls as if it cost as much as the dearest so far.
            tokens: The most tokens it may use, in the same way. A negative amount of either is none.
        """
        asked_nano = None if usd is None else _nano(usd)
        tokens = None if tokens is None else max(0, tokens)
        for account in self._chain:
            limit = account._what_forbids(now, asked_nano, tokens)
            if limit is not None:
                return account._refusal(limit, now)
        held_nano = self._largest_nano_usd if asked_nano is None else asked_nano
        held_tokens = self._largest_tokens if tokens is None else tokens
        for account in self._chain:
            account.iterations += 1
            account._held_nano_usd += held_nano
            account._held_tokens += held_tokens
        return Reservation(self._chain, held_nano, held_tokens)

    @staticmethod
    def settle(reservation: Reservation, usd: float, tokens: int) -> None:
        """Charge a model call with what it did cost, and free what was held back. A second time changes nothing."""
        if not reservation.open:
            return
        nano_usd = _nano(usd)
        reservation.open = False
        for account in reservation.accounts:
            account._held_nano_usd -= reservation.nano_usd
            account._held_tokens -= reservation.tokens
            account.nano_usd += nano_usd
            account.tokens += tokens
            account._largest_nano_usd = max(account._largest_nano_usd, nano_usd)
            account._largest_tokens = max(account._largest_tokens, tokens)

    @staticmethod
    def release(reservation: Reservation) -> None:
        """Hold nothing back any more for a call that may never be settled. If it is, it is charged."""
        for account in reservation.accounts:
            account._held_nano_usd -= reservation.nano_usd
            account._held_tokens -= reservation.tokens
        reservation.nano_usd = reservation.tokens = 0

    def _what_forbids(self, now: float, nano_usd: int | None, tokens: int | None) -> LimitName | None:
        limits = self.limits
        if limits.max_iterations is not None and self.iterations >= limits.max_iterations:
            return "max_iterations"
        if limits.max_seconds is not None and self.seconds(now) >= limits.max_seconds:
            return "max_seconds"
        if limits.max_usd is not None and not _fits(
            self.nano_usd, self._held_nano_usd, nano_usd, self._largest_nano_usd, _nano(limits.max_usd)
        ):
            return "max_usd"
        if limits.max_tokens is not None and not _fits(
            self.tokens, self._held_tokens, tokens, self._largest_tokens, limits.max_tokens
        ):
            return "max_tokens"
        return None

    # What is told

    def used(self, limit: LimitName, now: float) -> float:
        """What is used of a limit, in its own unit; what is held back is not."""
        if limit == "max_usd":
            return self.nano_usd / _NANO
        if limit == "max_seconds":
            return self.seconds(now)
        if limit == "max_tokens":
            return self.tokens
        return self.iterations if limit == "max_iterations" else self.tool_calls

    def warnings(self, now: float, limits: tuple[LimitName, ...] = LIMIT_NAMES) -> list[BudgetWarning]:
        """What has been passed of these limits since this was last asked, on every account of the chain."""
        return [
            warning
            for account in self._chain
            if account.limits is not NO_LIMITS
            for warning in account._new_warnings(now, limits)
        ]

    def _new_warnings(self, now: float, limits: tuple[LimitName, ...]) -> Iterator[BudgetWarning]:
        for limit in limits:
            allowed = getattr(self.limits, limit)
            if not allowed:
                continue
            used = self.used(limit, now)
            if used * 100 < allowed * WARNING_PERCENTS[0]:
                continue
            warned = self._warned.get(limit, 0)
            for percent in WARNING_PERCENTS:
                if percent > warned and used * 100 >= allowed * percent:
                    self._warned[limit] = percent
                    yield BudgetWarning(limit, self.scope, percent, used, allowed)

    def _refusal(self, limit: LimitName, now: float) -> Refusal:
        used = self.used(limit, now)
        if limit == "max_usd":
            used += self._held_nano_usd / _NANO
        elif limit == "max_tokens":
            used += self._held_tokens
        return Refusal(limit, self.scope, used, getattr(self.limits, limit))


def _fits(used: int, held: int, asked: int | None, largest: int, allowed: int) -> bool:
    if asked is None:
        return used < allowed if not held else used + held + largest <= allowed and used + held < allowed
    # What costs nothing passes an exhausted budget.
    return asked <= 0 or used + held + asked <= allowed


def _nano(usd: float) -> int:
    """Billionths of a dollar. A negative amount is none: no call gives money back."""
    if not math.isfinite(usd):
        raise ValueError("dollars must be a finite number")
    return max(0, round(usd * _NANO))

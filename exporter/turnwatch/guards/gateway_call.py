"""How one tool call goes through the gateway, whoever waits for it: a thread or a coroutine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, final

from turnwatch.core.current_call import running
from turnwatch.core.events import ToolCall
from turnwatch.core.guard import Guard
from turnwatch.core.hashing import input_hash
from turnwatch.core.quietly import Quietly
from turnwatch.core.watch import Watch
from turnwatch.errors import SideEffectHeld, TurnStopped
from turnwatch.guards.circuit_breaker import CircuitBreaker, down_text
from turnwatch.guards.holds import Holds
from turnwatch.guards.results import Kept, KeptResults, exact_key, plain_json
from turnwatch.guards.retries import is_ambiguous, is_worth_retrying, status_of, wait_before_retry
from turnwatch.guards.scratchpad import Scratchpad
from turnwatch.guards.single_flight import Flight, Flights, Outcome
from turnwatch.guards.tool_rules import (
    ToolRules,
    is_side_effect,
    may_be_repeated,
    may_be_reused,
    may_change_something,
)
from turnwatch.sources.calls_in_progress import ToolCallInProgress

NOT_ANSWERED: Final = object()


@final
class Shared:
    """What all calls of one gateway share."""

    __slots__ = ("_steps", "flights", "holds", "results", "watch")

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._steps: dict[str, Quietly] = {}
        self.results = KeptResults(watch.clock)
        self.flights = Flights()
        self.holds = Holds(watch.clock)

    def quietly(self, step: str) -> Quietly:
        """A block for one of the gateway's own steps."""
        quietly = self._steps.get(step)
        if quietly is None:
            quietly = self._steps[step] = Quietly(self.watch, step)
        return quietly


@final
class GatewayCall:
    """One call, from its admission to its end.

    A fault in any of the gateway's own steps is counted, and the call goes on without that step.

    Args:
        running: The call as the turn counts it, admitted by the turn's guard.
        args: Its arguments.
        rules: Its tool's.
        shared: The gateway's.
        breaker: Its tool's circuit.
        scratchpad: Its turn's.
        guard: Its turn's.
        conversation: What holds and declared reads belong to: the conversation's id, or the turn's where it has none.
        turn: What every other result belongs to: a user who asks again, in a new turn, wants it done again.
        safe_mode: What answers in place of the tool when it is down; None for a text that says so.
    """

    __slots__ = (
        "_args",
        "_attempt",
        "_breaker",
        "_changes",
        "_epoch",
        "_flight",
        "_guard",
        "_hold_key",
        "_key",
        "_note_key",
        "_over",
        "_raw",
        "_rules",
        "_running",
        "_safe_mode",
        "_scratchpad",
        "_shared",
    )

    def __init__(
        self,
        running: ToolCallInProgress,
        args: Mapping[str, Any],
        rules: ToolRules,
        shared: Shared,
        breaker: CircuitBreaker,
        scratchpad: Scratchpad,
        guard: Guard | None,
        conversation: str,
        turn: str,
        safe_mode: object,
    ) -> None:
        self._running = running
        self._args = args
        self._rules = rules
        self._shared = shared
        self._breaker = breaker
        self._scratchpad = scratchpad
        self._guard = guard
        self._safe_mode = safe_mode
        self._attempt = 1
        self._flight: Flight | None = None
        self._epoch = 0
        self._changes = True
        self._raw: bytes | None = None
        self._key: tuple[str, str, bytes] | None = None
        self._over = False
        self._hold_key: tuple[str, str, str] | None = None
        call = running.call
        self._note_key: tuple[str, object] = (call.tool, call.input_hash)
        with self._shared.quietly("what is known of a tool"):
            rules.declare(call)
            self._changes = may_change_something(call)
            if self._changes and is_side_effect(call):
                self._hold_key = (conversation, call.tool, self._loose_hash(call))
            self._raw = plain_json(args)
            if self._raw is not None:
                exact = exact_key(self._raw, args, rules.volatile_keys)
                self._note_key = (call.tool, exact)
                if may_be_reused(call):
                    self._key = (conversation if rules.override.read_only else turn, call.tool, exact)

    def _loose_hash(self, call: ToolCall) -> str:
        """The call's identity for holds: a second charge with another request id is the same charge."""
        said = self._rules.volatile_keys
        general = self._shared.watch.volatile_keys(call.tool)
        if call.input_hash is not None and said <= general:
            return call.input_hash
        return input_hash(call.tool, self._args, volatile_keys=general | said)

    # Before the tool runs

    def answer(self, confirmed: bool) -> Any:
        """An answer that needs no run of the tool, or NOT_ANSWERED.

        Raises:
            SideEffectHeld: The call may already have been carried out.
            TurnStopped: The turn is stuck and its guard stops it here.
        """
        self._ask_for_the_callers_word(confirmed)
        if confirmed:
            self._key = None
        result = self._earlier_result()
        if result is not NOT_ANSWERED:
            return self._answer_again(result)
        admitted = True
        with self._shared.quietly("a circuit breaker"):
            admitted = self._breaker.admits(self._shared.watch.clock())
        return NOT_ANSWERED if admitted else self._answer_for_the_tool()

    def _earlier_result(self) -> Any:
        if self._key is not None and self._rules.reuse_s:
            with self._shared.quietly("a lookup of an earlier result"):
                kept = self._shared.results.get(self._key)
                if kept is not None:
                    return kept.get()
        return NOT_ANSWERED

    def _ask_for_the_callers_word(self, confirmed: bool) -> None:
        if self._hold_key is None:
            return
        held = False
        with self._shared.quietly("a hold"):
            if confirmed:
                self._shared.holds.release(self._hold_key)
            held = self._shared.holds.holds(self._hold_key)
        if held:
            error = SideEffectHeld(
                f"{self._call.tool} failed before without saying whether it was carried out; the same call is not "
                "sent again until the caller confirms it (confirmed=True)"
            )
            self._write_down("held back: an earlier try may have been carried out")
            self._running.refused(error)
            raise error

    def _answer_again(self, result: Any) -> Any:
        self._write_down("the same result as before")
        self._running.returned(result, outcome="cached")
        return result

    def _answer_for_the_tool(self) -> Any:
        safe_mode = self._safe_mode
        if callable(safe_mode):
            with self._shared.quietly("a safe-mode answer"):
                safe_mode = safe_mode(self._args)
        if safe_mode is None or callable(safe_mode):
            left = self._breaker.seconds_left(self._shared.watch.clock())
            safe_mode = down_text(self._call.tool, self._breaker.failures, left)
        self._write_down("not tried: the tool is down")
        self._running.returned(safe_mode, outcome="denied")
        return safe_mode

    def flight_to_wait_for(self, loop: asyncio.AbstractEventLoop | None = None) -> Flight | None:
        """The same call that is running already; None when this one has to run.

        Args:
            loop: The event loop that would wait for it; None for a thread.
        """
        if self._key is not None:
            with self._shared.quietly("a look at running calls"):
                # A read that began before a write must not answer one that was asked for after it.
                epoch = None if self._changes else self._shared.results.epoch
                flight, is_mine = self._shared.flights.board((self._key, epoch), loop)
                if not is_mine and (loop is not None or not flight.needs_this_thread()):
                    return flight
                self._flight = flight if is_mine else None
        self._begin_epoch()
        return None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Waiting for the same call to land; being interrupted or cancelled there ends this one."""
        try:
            yield
        except BaseException as error:
            self._write_down(f"failed ({type(error).__name__})")
            self._running.failed(error)
            raise

    def landed(self, outcome: Outcome) -> Any:
        """The call that was waited for is over: its result once more, or NOT_ANSWERED when there is none to have.

        Raises:
            TurnStopped: The turn is stuck and its guard stops it here.

        What the call raised is raised here too.
        """
        if isinstance(outcome, BaseException):
            self._write_down(f"failed ({type(outcome).__name__})")
            self._running.failed(outcome)
            raise outcome
        result: Any = NOT_ANSWERED
        with self._shared.quietly("the result of the same call"):
            # Where it has no result to give, another that waited may have run meanwhile.
            result = self._earlier_result() if outcome is None else outcome.get()
        return result if result is NOT_ANSWERED else self._answer_again(result)

    def _begin_epoch(self) -> None:
        with self._shared.quietly("an epoch"):
            results = self._shared.results
            self._epoch = results.something_changes() if self._changes else results.epoch

    def while_it_runs(self) -> AbstractContextManager[None]:
        """Around the tool: what sees the call from inside, such as an instrumentation, is not to count it again."""
        return running(self._call)

    # After the tool ran

    def wait_after_error(self, error: Exception) -> float | None:
        """Seconds until the next attempt; None for no more."""
        with self._shared.quietly("a retry policy"):
            if is_worth_retrying(error, self._rules.retries) and (
                may_be_repeated(self._call) or not is_ambiguous(error)
            ):
                return self._wait(error)
        return None

    def wait_after_result(self, result: object) -> float | None:
        """Seconds until the next attempt after a response with a status that is worth one; None for no more."""
        if hasattr(result, "status_code"):
            with self._shared.quietly("a retry policy"):
                if self._is_bad(result) and may_be_repeated(self._call):
                    return self._wait(result)
        return None

    def _is_bad(self, result: object) -> bool:
        return hasattr(result, "status_code") and status_of(result) in self._rules.retries.retryable_status

    def _wait(self, failure: object) -> float | None:
        wait = wait_before_retry(failure, self._attempt, self._rules.retries)
        self._attempt += 1
        left = self._guard.remaining_seconds() if self._guard is not None else None
        return None if wait is not None and left is not None and wait >= left else wait

    def returned(self, result: Any) -> Any:
        """The tool returned.

        Raises:
            TurnStopped: The turn is stuck and its guard stops it here.
        """
        self._over = True
        has_failed = is_lost = False
        kept: Kept | None = None
        with self._shared.quietly("a result"):
            if hasattr(result, "status_code"):
                is_lost = is_ambiguous(result)
                has_failed = is_lost or self._is_bad(result)
            if self._key is not None:
                kept = Kept.of(result)
        self._end_epoch(kept=None if has_failed else kept)
        self._land(kept)
        with self._shared.quietly("a circuit breaker"):
            if has_failed:
                self._breaker.failed(self._shared.watch.clock())
            else:
                self._breaker.worked()
        self._note_what_was_sent(is_lost=is_lost, is_done=not has_failed)
        self._write_down("failed" if has_failed else _in_words(result))
        self._running.returned(result)
        return result

    def raised(self, error: BaseException) -> None:
        """The tool raised, for good."""
        self._over = True
        self._end_epoch(kept=None)
        # A turn that ended in the tool is this call's own: another's goes on.
        self._land(error if isinstance(error, Exception) and not isinstance(error, TurnStopped) else None)
        with self._shared.quietly("a circuit breaker"):
            if not isinstance(error, Exception):
                self._breaker.gave_up()
            elif is_worth_retrying(error, self._rules.retries) or is_ambiguous(error):
                self._breaker.failed(self._shared.watch.clock())
            else:
                self._breaker.worked()
        self._note_what_was_sent(is_lost=is_ambiguous(error))
        self._write_down(f"failed ({type(error).__name__})")
        self._running.failed(error)

    def _note_what_was_sent(self, *, is_lost: bool, is_done: bool = False) -> None:
        """Hold the call back from now on if it may have been carried out; let it go if it was."""
        if self._hold_key is not None:
            with self._shared.quietly("a hold"):
                if is_lost:
                    self._shared.holds.hold(self._hold_key)
                elif is_done:
                    self._shared.holds.release(self._hold_key)

    def thread_ended(self) -> None:
        """The thread that ran the tool has ended, perhaps long after the coroutine that waited for it was cancelled.

        What the tool changed since then is not in the epoch that ended there.
        """
        if self._over and self._changes:
            with self._shared.quietly("an epoch"):
                self._shared.results.something_changes()

    def _end_epoch(self, kept: Kept | None) -> None:
        with self._shared.quietly("an epoch"):
            results, epoch = self._shared.results, self._epoch
            if self._changes:
                begun = results.something_changes()
                # Its own beginning and end are no change between it and an identical call.
                epoch = begun if begun == epoch + 1 else -1
            if kept is not None and self._key is not None and self._rules.reuse_s:
                results.keep(self._key, kept, epoch, self._rules.reuse_s)

    def _land(self, outcome: Kept | BaseException | None) -> None:
        flight, self._flight = self._flight, None
        if flight is not None:
            with self._shared.quietly("the end of a running call"):
                self._shared.flights.land(flight, outcome)

    # Shared by the above

    @property
    def _call(self) -> ToolCall:
        return self._running.call

    def _write_down(self, outcome: str) -> None:
        with self._shared.quietly("a scratchpad"):
            self._scratchpad.add(self._note_key, self._call.tool, self._raw or self._args, outcome)


def _in_words(result: object) -> str:
    if result is None or (isinstance(result, str | bytes | list | tuple | dict | set) and not result):
        return "found nothing"
    return "answered"

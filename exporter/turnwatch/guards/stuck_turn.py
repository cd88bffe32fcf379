"""What is done when a turn is stuck: the next step of its policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from turnwatch.core.forking import shared_lock
from turnwatch.core.guard import Page, Response
from turnwatch.core.quietly import Quietly
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.errors import LoopDetected
from turnwatch.guards.nudge import nudge_text
from turnwatch.guards.refusals import stuck
from turnwatch.guards.responses import Steps


@final
class StuckTurn:
    """Takes the steps of one turn's policy. Thread-safe.

    Args:
        state: The turn.
        on_loop: The response to a stuck verdict, or the steps to take.
        pager: Told whom to wake for.

    Attributes:
        stop: Why the turn must not go on, once a step says so.
    """

    __slots__ = ("_lock", "_nudge", "_nudged_at_iteration", "_pager", "_shadowed", "_state", "_steps", "stop")

    def __init__(
        self, state: TurnState, on_loop: Response | Sequence[Response], pager: Callable[[Page], None] | None
    ) -> None:
        self._state = state
        self._steps = Steps(on_loop)
        self._pager = pager
        self._nudge: str | None = None
        self._nudged_at_iteration: int | None = None
        self._shadowed = False
        self.stop: LoopDetected | None = None
        self._lock = shared_lock()

    def respond(self, verdict: Verdict) -> None:
        """Take the next step. The calls of one model reply run side by side, and take one."""
        state = self._state
        with self._lock:
            iteration = state.iterations
            if iteration and iteration == self._nudged_at_iteration:
                return  # calls of the same model reply: it has not seen the nudge yet
            steps = self._steps.take()
            if "stop" in steps:
                self.stop = stuck(verdict)
            if "nudge" in steps:
                self._nudge = nudge_text(verdict)
                self._nudged_at_iteration = iteration
            is_shadow = "observe" in steps and not self._shadowed
            self._shadowed = self._shadowed or is_shadow
        if "page" in steps:
            self._page(verdict)
        if is_shadow:
            state.watch.count("agent_guard_shadow_stops_total", state.series.label, "loop_detected")

    def take_nudge(self) -> str | None:
        """The message for the model, once."""
        if self._nudge is None:
            return None
        with self._lock:
            nudge, self._nudge = self._nudge, None
        return nudge

    def _page(self, verdict: Verdict) -> None:
        state = self._state
        if self._pager is None:
            state.watch.internal_error("a page with no address: set page.alertmanager_url or page.webhook_url")
            return
        page = Page(
            agent=state.agent,
            tool=verdict.tool,
            kind=verdict.kind,
            severity=verdict.severity,
            reason=verdict.reason,
            conversation_id=state.conversation_id,
            turn_id=state.turn_id,
            trace_id=state.trace_id,
            spend_usd=state.total_spend_usd or state.spend_usd,
        )
        with Quietly(state.watch, "a pager"):
            self._pager(page)

"""The hand interface: an agent's own code says when turns, model calls and tool calls happen."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar, Unpack

from turnwatch.core.current_call import running
from turnwatch.core.default import default_watch
from turnwatch.core.events import MISSING, ToolCall, Usage
from turnwatch.core.guard import Guarding, check_keywords, open_guard
from turnwatch.core.hashing import bind_arguments
from turnwatch.core.names import name_of
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.core.watch import Watch
from turnwatch.errors import TurnStopped
from turnwatch.sources.calls_in_progress import ToolCallInProgress, refuse_coroutine
from turnwatch.sources.model_call import ModelCallBlock
from turnwatch.sources.own_spans import OwnSpan
from turnwatch.sources.turn_spans import TurnSpans

R = TypeVar("R")

_current: ContextVar[Turn | None] = ContextVar("turnwatch_turn", default=None)


def current_turn() -> Turn | None:
    """The turn that this code runs in, if any."""
    turn = _current.get()
    # Turns that generators hold open can be left in any order, and in another context than they were entered in.
    while turn is not None and turn._left:
        turn = turn._around
    return turn


class Turn:
    """One turn of an agent, as a context manager for ``with`` and ``async with``.

    Args:
        agent: The agent whose turn it is.
        conversation_id: Turns with the same id are judged together as well.
        hosted: The agent runs in another service; its span is a CLIENT span.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops it; see ``turn``.

    Attributes:
        state: The counts and verdicts.
        answer: The turn's final answer, if the agent sets it: for the judge of a goal.

    Raises:
        TypeError: There is no such keyword.
    """

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        turn_id: str | None = None,
        hosted: bool = False,
        watch: Watch | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        self._agent = agent
        self._conversation_id = conversation_id
        self._turn_id = turn_id
        self._hosted = hosted
        self._watch = watch or default_watch()
        check_keywords(guarding)
        self._guarding = guarding
        self.answer: object = None
        self._state: TurnState | None = None
        self._spans: TurnSpans  # made with the state
        self._stop_reason: str | None = None
        self._around: Turn | None = None
        self._entered_again = 0
        self._left = False

    # What a caller reads

    @property
    def state(self) -> TurnState:
        """The turn's counts and verdicts; opened by entering the turn."""
        if self._state is None:
            raise RuntimeError("this turn is not open: use `with turnwatch.turn(...) as turn:`")
        return self._state

    @property
    def iterations(self) -> int:
        """Model calls so far, failed ones included."""
        return self.state.iterations

    @property
    def tool_calls(self) -> int:
        """Tool calls so far."""
        return self.state.tool_calls

    @property
    def spend_usd(self) -> float | None:
        """Dollars so far; None when no model call had usage and a price."""
        return self.state.spend_usd

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict so far."""
        return self.state.verdict

    @property
    def stop_reason(self) -> str | None:
        """Why the turn ended; None while it is open."""
        return self.state.stop_reason

    @property
    def partial(self) -> object:
        """What a guard's exception hands over as ``partial``: what was set here, else the latest results."""
        guard = self.state.guard
        return None if guard is None else guard.partial

    @partial.setter
    def partial(self, partial: object) -> None:
        guard = self.state.guard
        if guard is not None:
            guard.partial = partial

    def explain(self) -> str:
        """Every verdict in words."""
        return self.state.explain()

    def take_nudge(self) -> str | None:
        """What to tell the model before its next reply, with ``on_loop="nudge"``: once, and None most of the time."""
        guard = self.state.guard
        return None if guard is None else guard.take_nudge()

    # The turn itself

    def open(self, parent: TurnState | None = None) -> Turn:
        """Open the turn without making it the current one, and without a span: for turns that are no block of code.

        Args:
            parent: The turn that started this one; the current one when left out.

        Raises:
            ValueError: ``on_loop`` names no response.
            TurnStopped: It cannot be guarded and ``fail_closed`` is set.
        """
        around = current_turn()
        if parent is None and around is not None:
            parent = around._state
        self._end_of_the_turn_before()
        self._state = TurnState(
            self._agent,
            conversation_id=self._conversation_id,
            parent=parent,
            turn_id=self._turn_id,
            watch=self._watch,
        )
        self._spans = TurnSpans(self._state)
        try:
            self._state.guard = open_guard(self._state, self._guarding)
        except Exception:
            self._state.end("error")
            raise
        return self

    def _end_of_the_turn_before(self) -> None:
        """End the turn that this object stood for, where it is open still: tasks side by side need one each."""
        if self._state is not None and not self._state.ended:
            self._watch.internal_error("a Turn that is entered in two places at once")
            self.close("unknown")

    def close(self, stop_reason: str = "final_answer") -> None:
        """End a turn that ``open`` opened."""
        self.state.end(self._stop_reason or self._guards_reason() or stop_reason)
        if self.state.guard is not None:
            self.state.guard.end()

    def __enter__(self) -> Turn:
        around = current_turn()
        if around is self:
            self._entered_again += 1  # one turn still; it ends where it was entered first
            return self
        self.open()
        inner = around
        while inner is not None and inner._around is not self:
            inner = inner._around
        if inner is not None:  # entered again inside of one that was entered in it, which went on when it was left
            inner._around = self._around
        self._around, self._left = around, False
        _current.set(self)
        self._spans.turn_begins(hosted=self._hosted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._entered_again:
            self._entered_again -= 1
            return
        try:
            goal = self._goal_missed(error, may_await=False)
        except BaseException as interrupted:  # the judge, who is the user's code
            self._leave(interrupted, None)
            raise
        self._leave(error, goal if isinstance(goal, str) else None)

    def _goal_missed(self, error: BaseException | None, *, may_await: bool) -> Awaitable[str | None] | str | None:
        guard = self.state.guard
        if guard is None or error is not None or self._stop_reason or self._guards_reason():
            return None
        return guard.judge(self, may_await=may_await)

    def _guards_reason(self) -> str | None:
        guard = self.state.guard
        return None if guard is None else guard.stop_reason()

    def _leave(self, error: BaseException | None, goal_missed: str | None) -> None:
        state = self.state
        reason = self._stop_reason or (
            goal_missed or self._guards_reason() or "final_answer" if error is None else stop_reason_of(error)
        )
        state.end(reason)
        if state.guard is not None:
            state.guard.end()
        self._left, self._stop_reason = True, None
        if _current.get() is self:
            _current.set(current_turn())
        self._spans.turn_ends(error)

    async def __aenter__(self) -> Turn:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._entered_again:
            self._entered_again -= 1
            return
        try:
            goal = self._goal_missed(error, may_await=True)
            if inspect.isawaitable(goal):
                goal = await goal
        except BaseException as interrupted:  # the judge, who may be cancelled as well
            self._leave(interrupted, None)
            raise
        self._leave(error, goal)

    def stop(self, stop_reason: str) -> None:
        """Say why the turn will end, before it does: one of the closed set of stop reasons."""
        self._stop_reason = name_of(stop_reason) or None

    # Model calls

    def model_call(
        self, model: str = "", *, provider: str = "", reserve: Usage | float | None = None
    ) -> ModelCallBlock:
        """Wrap one model call: ``with turn.model_call("claude-sonnet-4-5") as call: ...; call.usage(reply)``.

        ``async with`` does the same.

        Args:
            model: The model asked for.
            provider: The provider's id, when the model's name does not say it.
            reserve: The most that the call may use, tokens or dollars, held back from the budget until it ends:
                for calls that run side by side, and for a limit that must not be passed by one call.

        Raises:
            TurnStopped: A guard refuses the call. It is not counted.
        """
        return ModelCallBlock(self.state, self._spans, name_of(model), provider, reserve)

    # Tool calls

    def call_tool(self, name: str, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
        """Run a tool and count the call.

        Args:
            name: The tool's name as the model knows it.
            fn: What runs it.
            *args: Its arguments, passed on unchanged.
            **kwargs: Its arguments, passed on unchanged.

        Returns:
            What ``fn`` returns. What it raises passes through unchanged.

        Raises:
            TurnStopped: A guard refuses the call, which is counted as denied; or the turn is stuck and ends here.
            TypeError: ``fn`` gives a coroutine: what would come of it is not known here. Use ``acall_tool``.
        """
        begun = self.begin_tool(name, self._arguments(fn, args, kwargs))
        try:
            with running(begun.call):
                result = fn(*args, **kwargs)
            refuse_coroutine(name, result, "acall_tool, or put watch_tool on the coroutine function itself")
        except BaseException as error:
            begun.failed(error)
            raise
        begun.returned(result)
        return result

    async def acall_tool(self, name: str, fn: Callable[..., Awaitable[R]], /, *args: Any, **kwargs: Any) -> R:
        """Run a coroutine function as a tool and count the call. See ``call_tool``."""
        begun = self.begin_tool(name, self._arguments(fn, args, kwargs))
        try:
            with running(begun.call):
                result = await fn(*args, **kwargs)
        except BaseException as error:
            begun.failed(error)
            raise
        begun.returned(result)
        return result

    def _arguments(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        try:
            return bind_arguments(fn, args, kwargs)
        except Exception:
            self._watch.internal_error("the arguments of a tool call")
            return MISSING

    def begin_tool(self, name: str, args: object = MISSING, *, call_id: str | None = None) -> ToolCallInProgress:
        """Count a tool call that your own code runs; tell what is returned what came of it.

        Args:
            name: The tool's name as the model knows it.
            args: Its arguments.
            call_id: The model's id for the call.

        Raises:
            TurnStopped: A guard refuses the call. It is counted, as denied.
        """
        state = self.state
        call = ToolCall(name, args, call_id=call_id, agent=self._agent, started=self._watch.clock())
        state.begin_call(call)
        span = self._spans.tool_begins(call)
        begun = ToolCallInProgress(call, functools.partial(self._end_tool, span), self._watch)
        guard = state.guard
        if guard is not None:
            try:
                guard.before_tool(call)
            except TurnStopped as stopped:
                begun.refused(stopped)
                raise
        return begun

    def _end_tool(self, span: OwnSpan | None, call: ToolCall, result: object) -> None:
        verdict = self.state.end_call(call)
        self._spans.tool_ends(span, call, verdict)
        guard = self.state.guard
        if guard is not None and call.outcome != "denied":
            guard.after_tool(call, verdict, result)


def stop_reason_of(error: BaseException) -> str:
    """Why a turn ends that this is raised out of."""
    if isinstance(error, TurnStopped):
        return error.stop_reason
    if isinstance(error, KeyboardInterrupt | GeneratorExit) or type(error).__name__ == "CancelledError":
        return "user_cancelled"
    return "error"


def turn(
    agent: str = "",
    conversation_id: str | None = None,
    *,
    turn_id: str | None = None,
    hosted: bool = False,
    watch: Watch | None = None,
    **guarding: Unpack[Guarding],
) -> Turn:
    """One turn of an agent: ``with turnwatch.turn(agent="support-bot", conversation_id="c-17") as turn: ...``.

    A turn opened inside another becomes its child: it has counts of its own, and its dollars and tokens
    go into the parent's totals.

    Args:
        agent: The agent's name; a label of its metrics.
        conversation_id: Turns with the same id are judged together as well. Never a label.
        turn_id: An id of your own.
        hosted: The agent runs in another service.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops it; what is left out comes from the settings. ``limits`` and
            ``conversation_limits`` (Limits), ``on_loop`` ("observe", "nudge", "stop", "page" or a sequence of
            them), ``on_warning`` (called with a BudgetWarning), ``goal`` (a judge, called with the turn), ``pager``
            (called with a Page), ``kills`` (where kill flags are) and ``fail_closed``.

    Raises:
        TypeError: There is no such keyword.
    """
    return Turn(agent, conversation_id, turn_id=turn_id, hosted=hosted, watch=watch, **guarding)

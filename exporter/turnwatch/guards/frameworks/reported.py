"""A turn whose calls are reported from outside: by a framework's hooks, or by a client library that is wrapped."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Unpack, final

from turnwatch.core.current_call import running
from turnwatch.core.default import default_watch
from turnwatch.core.events import MISSING, ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.guard import Guarding
from turnwatch.core.turn import TurnState
from turnwatch.core.usage import read_model, read_usage
from turnwatch.core.watch import Watch
from turnwatch.errors import TurnStopped
from turnwatch.guards.from_settings import check_guarding
from turnwatch.sources.calls_in_progress import ToolCallInProgress
from turnwatch.sources.hand import Turn, current_turn, stop_reason_of
from turnwatch.sources.own_spans import mark_current_span

_tool_of: Final[ContextVar[TurnState | None]] = ContextVar("turnwatch_tool_of", default=None)
"""The reported turn whose tool runs in this context."""


@final
class Replies:
    """What a wrapped model call brought.

    Attributes:
        reply: The reply, its usage record, or the chunks of a stream.
        text: What the model said, where it asked for no tool.
    """

    __slots__ = ("reply", "text")

    def __init__(self) -> None:
        self.reply: object = None
        self.text: str | None = None


@final
class ReportedTurn:
    """One turn, in begin and end calls that may come from different tasks and threads.

    Within ``with turnwatch.turn(...)`` the calls belong to that turn, whose guard decides; limits given here are
    put on it as well. Elsewhere a turn is opened, and closed again by ``close``. One that is opened while a tool of
    another reported turn runs is its child, and pays from its budget.

    Args:
        agent: The agent whose turn it is.
        conversation_id: Its conversation.
        watch: Where it counts; the process's own watch when left out.
        parent: The turn that started it, where its tools do not run in ``tool_call``.
        **guarding: What stops it; see ``turnwatch.turn``.

    Attributes:
        turn: The turn.
        is_own: It was opened here.
        stopped: Why it must not go on, where a hook could not raise it at once.

    Raises:
        TurnStopped: It cannot be guarded and ``fail_closed`` is set.
    """

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        watch: Watch | None = None,
        parent: ReportedTurn | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        turn = current_turn()
        self.is_own = turn is None
        if turn is None:
            turn = Turn(agent, conversation_id, watch=watch, **guarding).open(_above(parent, watch))
        elif turn.state.guard is not None and (limits := guarding.get("limits")) is not None:
            turn.state.guard.tighten(limits)
        self.turn = turn
        self.stopped: TurnStopped | None = None

    @property
    def state(self) -> TurnState:
        """The turn's counts and verdicts."""
        return self.turn.state

    def take_nudge(self) -> str | None:
        """What to tell the model before its next reply; None most of the time."""
        return self.turn.take_nudge()

    # Model calls

    def begin_model(self, model: str = "", *, provider: str = "", reserve: Usage | float | None = None) -> ModelCall:
        """Admit and count a model call.

        Raises:
            TurnStopped: A guard refuses it. It is not counted.
        """
        state = self.state
        call = ModelCall(model, provider=provider, started=state.watch.clock())
        if state.guard is not None:
            state.guard.before_model(call, reserve)
        state.begin_model(call.started)
        _begun(state.watch, call)
        return call

    def end_model(
        self,
        call: ModelCall,
        reply: object = None,
        *,
        text: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Note what came of a model call.

        Args:
            call: What ``begin_model`` returned.
            reply: The reply, its usage record, or the chunks of a stream.
            text: What the model said, where it asked for no tool.
            error: What was raised in place of a reply.
        """
        state = self.state
        try:
            if reply is not None:
                call.usage = read_usage(reply)
                call.model = call.model or read_model(reply) or ""
            if text:
                call.text = Evidence.of(text)
                if self.is_own:
                    self.turn.answer = text
            if error is not None:
                call.outcome, call.error_type = "error", type(error).__name__
        except Exception:
            state.watch.internal_error("a model call's reply")
        verdict = state.end_model(call)
        state.watch.counted_calls.over(call, state.watch.clock())
        if state.guard is not None:
            state.guard.after_model(call, verdict)

    # Tool calls

    def begin_tool(
        self,
        name: str,
        args: object = MISSING,
        *,
        call_id: str | None = None,
        runs_here: bool = False,
        is_over: bool = False,
    ) -> ToolCallInProgress:
        """Count and admit a tool call; tell what is returned what came of it.

        Args:
            name: The tool's name.
            args: Its arguments.
            call_id: The model's id for the call.
            runs_here: The tool runs in this context, so a turn that is opened here before it ends is a child.
            is_over: The tool has run already, for how long is not known.

        Raises:
            TurnStopped: A guard refuses it. It is counted, as denied.
        """
        state = self.state
        now = state.watch.clock()
        call = ToolCall(name, args, call_id=call_id, agent=state.agent, started=now, ended=now if is_over else None)
        state.begin_call(call)
        _begun(state.watch, call)
        end = functools.partial(self._leave_tool, _tool_of.get()) if runs_here else self._end_tool
        in_progress = ToolCallInProgress(call, end, state.watch)
        if state.guard is not None:
            try:
                state.guard.before_tool(call)
            except TurnStopped as stopped:
                in_progress.refused(stopped)
                raise
        if runs_here:
            _tool_of.set(state)
        return in_progress

    def _leave_tool(self, around: TurnState | None, call: ToolCall, result: object) -> None:
        if _tool_of.get() is self.state:  # not where the call ends in another context than it began in
            _tool_of.set(around)
        self._end_tool(call, result)

    def _end_tool(self, call: ToolCall, result: object) -> None:
        state = self.state
        verdict = state.end_call(call)
        state.watch.counted_calls.over(call, state.watch.clock())
        if state.guard is not None and call.outcome != "denied":
            state.guard.after_tool(call, verdict, result)

    @contextmanager
    def tool_runs(self) -> Iterator[None]:
        """While a tool runs of which the hooks tell only later: a turn that is opened in here is a child."""
        around = _tool_of.set(self.state)
        try:
            yield
        finally:
            _tool_of.reset(around)

    def tool_runs_from_here(self) -> None:
        """The same for what is left of this context, which is the tool's alone."""
        _tool_of.set(self.state)

    # Both, for hooks that wrap a call

    @contextmanager
    def model_call(self, model: str = "", *, provider: str = "") -> Iterator[Replies]:
        """Wrap a model call; tell what is yielded of the reply. What the block raises passes unchanged.

        A client or a span that sees the call from inside the block does not count it again.

        Raises:
            TurnStopped: A guard refuses the call.
        """
        call = self.begin_model(model, provider=provider)
        replies = Replies()
        try:
            with running(call):
                yield replies
        except BaseException as error:
            self.end_model(call, replies.reply, error=error)
            raise
        self.end_model(call, replies.reply, text=replies.text)

    @contextmanager
    def tool_call(
        self, name: str, args: object = MISSING, *, call_id: str | None = None
    ) -> Iterator[ToolCallInProgress]:
        """Wrap a tool call; what is yielded must be told of the result. What the block raises passes unchanged.

        Raises:
            TurnStopped: A guard refuses the call, or the turn is stuck.
        """
        in_progress = self.begin_tool(name, args, call_id=call_id, runs_here=True)
        try:
            with running(in_progress.call):
                yield in_progress
        except BaseException as error:
            in_progress.failed(error)
            raise

    # The end

    def close(self, stop_reason: str = "final_answer", error: BaseException | None = None) -> None:
        """End the turn, if it was opened here. A second time changes nothing.

        Args:
            stop_reason: Why, when there was no error and no guard stopped it.
            error: What ended it.
        """
        if not self.is_own or self.state.ended:
            return
        if error is None and stop_reason == "final_answer":
            try:
                stop_reason = self._goal_missed() or stop_reason
            except BaseException as interrupted:  # the judge, who is the user's code
                self.turn.close(stop_reason_of(interrupted))
                raise
        elif error is not None:
            stop_reason = stop_reason_of(error)
        self.turn.close(stop_reason)

    def _goal_missed(self) -> str | None:
        guard = self.state.guard
        missed = None if guard is None or guard.stop_reason() else guard.judge(self.turn, may_await=False)
        return missed if isinstance(missed, str) else None


@final
class TurnOpener:
    """Opens the turns that a framework's hooks report to, as those who made the hooks asked for it.

    Args:
        agent: What the turns' agent is called, whatever the framework says.
        conversation_id: Their conversation, whatever the framework says.
        watch: Where they count; None for the process's own watch.
        guarding: What stops them.

    Raises:
        TypeError: There is no such keyword, or ``limits`` or ``conversation_limits`` is something else than Limits.
        ValueError: ``on_loop`` names no response.
    """

    __slots__ = ("_agent", "_conversation_id", "_guarding", "_watch")

    def __init__(self, agent: str, conversation_id: str | None, watch: Watch | None, guarding: Guarding) -> None:
        check_guarding(guarding)  # here, where whoever wrote it sees it, and not in a hook
        self._agent = agent
        self._conversation_id = conversation_id
        self._watch = watch
        self._guarding = guarding

    @property
    def watch(self) -> Watch:
        """Where the turns count."""
        return self._watch or default_watch()

    def open(
        self, agent: object = None, conversation_id: object = None, *, parent: ReportedTurn | None = None
    ) -> ReportedTurn:
        """Open a turn.

        Args:
            agent: The framework's name of the agent, if it has one.
            conversation_id: The framework's id of the conversation, session or thread, if it has one. A child is in
                its parent's.
            parent: See ``ReportedTurn``.

        Raises:
            TurnStopped: It cannot be guarded and ``fail_closed`` is set.
        """
        name = self._agent or ("" if agent is None else str(agent))
        conversation = self._conversation_id
        # A sub-agent often gets a session of its own, but the conversation is the one that the user is in.
        if conversation is None and conversation_id not in (None, "") and _above(parent, self._watch) is None:
            conversation = str(conversation_id)
        return ReportedTurn(name, conversation, watch=self._watch, parent=parent, **self._guarding)


def _above(parent: ReportedTurn | None, watch: Watch | None) -> TurnState | None:
    """The turn that a turn opened now is a child of: the one named, or the one whose tool runs here."""
    above = _tool_of.get() if parent is None else parent.state
    if above is None or above.ended or (watch is not None and watch is not above.watch):
        return None
    return above


def _begun(watch: Watch, call: ModelCall | ToolCall) -> None:
    """Let spans of the same call know that it is counted: the current one, and those that come beside it."""
    try:
        if isinstance(call, ToolCall):
            mark_current_span("execute_tool")
        trace = watch.exemplar()
        watch.counted_calls.begun(call, watch.clock(), trace["trace_id"] if trace else None)
    except Exception:
        watch.internal_error("marking a counted call")

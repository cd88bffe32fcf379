"""CrewAI: hooks that watch and guard what the agents of a crew do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, Unpack

from turnwatch.core.events import ModelCall, Usage
from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener
from turnwatch.sources.calls_in_progress import ToolCallInProgress

try:
    from crewai.hooks.dispatch import HookAborted, InterceptionPoint, register_scoped, scoped_hooks
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.crewai", "crewai") from None

# What CrewAI tells the model in place of a result. Its hooks are not told of a failure in another way.
_FAILED: Final = ("Error executing tool:", "Tool not found", "I encountered an error")
_BLOCKED: Final = "Tool execution blocked by hook."
_UNCACHED_INPUT: Final = frozenset({"anthropic", "bedrock"})
"""Providers whose input tokens CrewAI hands on as they are: without those from and to the cache."""


class _RunningTool(NamedTuple):
    """A tool call of an agent's.

    Attributes:
        call: As its turn counts it.
        arguments: CrewAI's own object, by which its end is known. Held, so that nothing else gets its address.
        current: Whose work this context was in before.
    """

    call: ToolCallInProgress
    arguments: Any
    current: _Work | None


class _Work:
    """What one agent does for one task: a turn, and what is under way in it."""

    def __init__(self, turn: ReportedTurn, asked_by: _Work | None, subjects: tuple[Any, Any]) -> None:
        self.turn = turn
        self.asked_by = asked_by
        self.subjects = subjects  # held, so that nothing else gets their address
        self.model: ModelCall | None = None
        self.llm: Any = None
        self.used_before: Any = None
        self.nudged: tuple[list[Any], dict[str, str]] | None = None
        self.tools: dict[int, _RunningTool] = {}
        self.lock = threading.RLock()


class TurnHooks:
    """Watches and guards each agent's work on a task as one turn.

    ::

        with TurnHooks(on_loop="nudge", limits=Limits(max_usd=1.0)):
            crew.kickoff()

    A stop blocks the model or tool call, ends the crew's run, and comes out of the block as ``TurnStopped``. A nudge
    is the last message of one request and is not kept. What a co-worker is asked to do is a turn of its own, which
    pays from the budget of the turn that asked.

    For one run at a time: runs side by side have one each.

    Args:
        agent: The agents' name; each one's role when left out.
        conversation_id: Their conversation.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops a turn; see ``turnwatch.turn``.
    """

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        watch: Watch | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        self._opener = TurnOpener(agent, conversation_id, watch, guarding)
        self._open: dict[tuple[int, int], _Work] = {}
        self._lock = threading.Lock()
        self._current: ContextVar[_Work | None] = ContextVar("turnwatch_crewai_work", default=None)
        self._exit = ExitStack()
        self._entered = False

    def __enter__(self) -> Self:
        """Set the hooks.

        Raises:
            RuntimeError: They are set already.
        """
        if self._entered:
            raise RuntimeError("these hooks are in use: make a TurnHooks for each run")
        self._entered = True
        self._open.clear()
        self._exit.enter_context(scoped_hooks())
        for point, hook in (
            (InterceptionPoint.PRE_STEP, self._task_starts),
            (InterceptionPoint.POST_STEP, self._task_ends),
            (InterceptionPoint.PRE_MODEL_CALL, self._before_model),
            (InterceptionPoint.POST_MODEL_CALL, self._after_model),
            (InterceptionPoint.PRE_TOOL_CALL, self._before_tool),
            (InterceptionPoint.POST_TOOL_CALL, self._after_tool),
        ):
            register_scoped(point, self._told_of_faults(hook))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = False
        self._exit.close()
        stopped = error.__cause__ if isinstance(error, HookAborted) else None
        reason = stopped if isinstance(stopped, TurnStopped) else error
        with self._lock:
            left = list(self._open.values())  # kept: threads that CrewAI has given up on still meet their turn's stop
        for work in left:
            if isinstance(reason, TurnStopped):
                work.turn.stopped = work.turn.stopped or reason
            self._close(work, reason)
        if isinstance(stopped, TurnStopped):
            raise stopped

    def _told_of_faults(self, hook: Callable[[Any], None]) -> Callable[[Any], None]:
        """CrewAI drops what a hook raises, but for ``HookAborted``."""

        def told(context: Any) -> None:
            try:
                hook(context)
            except TurnStopped as stopped:
                raise HookAborted(str(stopped), source="turnwatch") from stopped
            except Exception:
                self._opener.watch.internal_error("a hook of CrewAI")

        return told

    # Turns

    def _work(self, agent: Any, task: Any) -> _Work | None:
        """The agent's work on the task, begun now if it is not known yet."""
        asked_by = self._current.get()
        if agent is None:  # a model call of CrewAI's own, for an agent's work
            return None if asked_by is None or asked_by.turn.state.ended else asked_by
        key = (id(agent), id(task))
        with self._lock:
            work = self._open.get(key)
            if work is None and self._entered:
                parent = None if asked_by is None else asked_by.turn
                turn = self._opener.open(str(getattr(agent, "role", None) or "").strip(), parent=parent)
                work = self._open[key] = _Work(turn, asked_by, (agent, task))
        return work

    def _close(self, work: _Work, error: BaseException | None = None) -> None:
        self._model_is_over(work, error=error)
        work.turn.close(error=work.turn.stopped or error)

    def _close_asked_by(self, asking: _Work) -> None:
        with self._lock:
            keys = [key for key, work in self._open.items() if work.asked_by is asking]
            asked = [self._open.pop(key) for key in keys]
        for work in asked:
            self._close(work)

    def _task_starts(self, context: Any) -> None:
        if context.kind == "task":
            self._current.set(self._work(context.agent, context.task))

    def _task_ends(self, context: Any) -> None:
        if context.kind != "task":
            return
        with self._lock:
            work = self._open.pop((id(context.agent), id(context.task)), None)
        self._current.set(None)
        if work is not None:
            if work.turn.is_own:
                work.turn.turn.answer = getattr(context.output, "raw", None)
            self._close_asked_by(work)
            self._close(work)

    # Model calls

    def _before_model(self, context: Any) -> None:
        work = self._work(context.agent, context.task)
        if work is None:
            return
        self._model_is_over(work)
        turn = work.turn
        if turn.stopped is None:
            try:
                work.model = turn.begin_model(str(getattr(context.llm, "model", None) or ""))
            except TurnStopped as stopped:
                turn.stopped = stopped
        if turn.stopped is not None:
            raise turn.stopped
        work.llm, work.used_before = context.llm, _used(context.llm)
        nudge = turn.take_nudge()
        if nudge is not None:
            note = {"role": "user", "content": nudge}
            context.messages.append(note)
            work.nudged = (context.messages, note)

    def _after_model(self, context: Any) -> None:
        work = self._work(context.agent, context.task)
        if work is not None:
            self._model_is_over(work, text=context.response)

    def _model_is_over(self, work: _Work, text: str | None = None, error: BaseException | None = None) -> None:
        """CrewAI tells nobody of a reply that asks for tools: it is over when the next thing happens."""
        with work.lock:
            call, work.model = work.model, None
            if work.nudged is not None:
                messages, note = work.nudged
                messages[:] = [message for message in messages if message is not note]
                work.nudged = None
            if call is not None:
                work.turn.end_model(call, _used_since(work.llm, work.used_before), text=text, error=error)

    # Tool calls

    def _before_tool(self, context: Any) -> None:
        work = self._work(context.agent, context.task)
        if work is None:
            return
        self._model_is_over(work)
        if work.turn.stopped is not None and work.turn.state.ended:
            raise work.turn.stopped
        arguments = context.tool_input
        try:
            call = work.turn.begin_tool(context.tool_name, dict(arguments))
        except TurnStopped as stopped:
            work.turn.stopped = stopped
            raise
        work.tools[id(arguments)] = _RunningTool(call, arguments, self._current.get())
        self._current.set(work)

    def _after_tool(self, context: Any) -> None:
        work = self._work(context.agent, context.task)
        running = None if work is None else work.tools.pop(id(context.tool_input), None)
        if work is None or running is None:
            return
        self._current.set(running.current)
        self._close_asked_by(work)
        result = context.raw_tool_result if context.raw_tool_result is not None else context.tool_result
        try:
            if isinstance(result, str) and result.startswith(_FAILED):
                running.call.failed_saying(result)
            elif isinstance(result, str) and result.startswith(_BLOCKED):
                running.call.returned(result, outcome="denied")
            else:
                running.call.returned(result)
        except TurnStopped as stopped:
            # The next call is the first that CrewAI lets a hook refuse.
            work.turn.stopped = stopped


def _used(llm: Any) -> Any:
    """What a model was used for until now; None where it does not say."""
    summary = getattr(llm, "get_token_usage_summary", None)
    return None if summary is None else summary()


def _used_since(llm: Any, before: Any) -> Usage | None:
    if before is None:
        return None
    used = llm.get_token_usage_summary().delta_since(before)
    if not used.total_tokens:
        return None
    cached, written = used.cached_prompt_tokens, used.cache_creation_tokens
    apart = cached + written if getattr(llm, "provider", "") in _UNCACHED_INPUT else 0
    return Usage(used.prompt_tokens + apart, used.completion_tokens, cached, written, used.reasoning_tokens)

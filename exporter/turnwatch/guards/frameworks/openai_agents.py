"""The OpenAI Agents SDK: hooks for ``Runner.run``, and a stop as one of the SDK's own exceptions."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Final, Unpack

from turnwatch.core.events import MISSING, ModelCall
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.guard import Guarding
from turnwatch.core.quietly import Quietly
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.quiet_hook import quiet_hook
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener
from turnwatch.sources.calls_in_progress import ToolCallInProgress

try:
    from agents import AgentsException, RunHooks
    from agents.models import get_default_model
    from agents.tracing import get_current_trace
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.openai_agents", "openai-agents") from None


SILENT_SECONDS: Final = 600.0
MAX_RUNS: Final = 1_000


class _Run:
    """One run of the runner: its turn and what is under way.

    Attributes:
        turn: Its turn.
        usage: Shared by all contexts of a run, those of agents that it runs as tools included.
        approvals: Shared by all contexts of a run, but not with agents that it runs as tools.
        models: Model calls that run, by agent: an agent never waits for two at once.
        tools: Tool calls that run, by id.
    """

    def __init__(self, turn: ReportedTurn, usage: object, approvals: object) -> None:
        self.turn = turn
        self.usage = usage
        self.approvals = approvals
        self.models: dict[int, ModelCall] = {}
        self.tools: dict[str, ToolCallInProgress] = {}


class TurnHooks(RunHooks[Any]):
    """Watches and guards each run as one turn, whatever agents it is handed to.

    ::

        hooks = TurnHooks(on_loop="nudge", limits=Limits(max_usd=1.0))
        agent = Agent(..., tools=[helper.as_tool("helper", "Knows the orders.", hooks=hooks)])
        result = await Runner.run(agent, question, hooks=hooks)

    An agent that is used as a tool runs without hooks unless ``as_tool`` is given them. With the same ones, each run of
    it is a turn below that of the agent that asked, and pays from its budget.

    A stop is raised out of ``Runner.run``, or out of ``stream_events``, as an ``AgentsException`` that is a
    ``TurnStopped`` as well; the SDK puts what the run had produced in its ``run_data``. A nudge is the last item of
    the model's next request, and of nothing that is kept.

    The SDK tells no hook that a run has failed, except for a stop of ours. Such a turn ends when it has been silent
    for ten minutes. Within ``with turnwatch.turn(...)`` it ends with the block.

    Args:
        agent: The agent's name; that of the run's first agent when left out.
        conversation_id: Its conversation; the trace's ``group_id`` when left out.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops the turn; see ``turnwatch.turn``.
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
        self._runs: dict[tuple[int, int], _Run] = {}  # by the identities of usage and approvals, which a run holds
        self._lock = fork_safe_lock()
        _all.add(self)

    def _run(self, context: Any, agent: Any) -> _Run:
        """The run that this context belongs to."""
        usage, approvals = context.usage, getattr(context, "_approvals", None)
        key = (id(usage), id(approvals))
        run = self._runs.get(key)
        if run is None or (run.turn.is_own and run.turn.state.ended):
            turn = self._opener.open(
                getattr(agent, "name", None),
                getattr(get_current_trace(), "group_id", None),
                parent=self._caller(usage),
            )
            run = _Run(turn, usage, approvals)
            with self._lock:
                self._runs[key] = run
            self.end_silent()
            self._opener.watch.before_gauges(_end_silent)
        return run

    def _caller(self, usage: object) -> ReportedTurn | None:
        """The turn whose tool is the agent that begins to run: the innermost of those that share its usage."""
        with self._lock:
            runs = reversed(self._runs.values())
            return next((run.turn for run in runs if run.usage is usage and run.tools), None)

    def end_silent(self) -> None:
        """End the turns of runs of which nothing more is to be expected."""
        for run in self._silent():
            with Quietly(self._opener.watch, "the end of a silent run"):
                run.turn.close("error")

    def _silent(self) -> list[_Run]:
        before = self._opener.watch.clock() - SILENT_SECONDS
        with self._lock:
            silent = [key for key, run in self._runs.items() if run.turn.state.last_active < before]
            silent += list(self._runs)[: max(0, len(self._runs) - len(silent) - MAX_RUNS)]
            return [run for key in silent if (run := self._runs.pop(key, None)) is not None]

    def _forget(self, run: _Run) -> None:
        with self._lock:
            self._runs.pop((id(run.usage), id(run.approvals)), None)

    @quiet_hook
    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """An agent takes over; the first one opens the turn."""
        self._run(context, agent)

    @quiet_hook
    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        """An agent has given the final answer."""
        run = self._run(context, agent)
        if run.turn.is_own:
            run.turn.turn.answer = output
        run.turn.close()
        self._forget(run)

    @quiet_hook
    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """A model is about to be asked."""
        run = self._run(context, agent)
        try:
            run.models[id(agent)] = run.turn.begin_model(_model_name(agent))
        except TurnStopped as stopped:
            raise self._stopped(run, stopped) from None
        nudge = run.turn.take_nudge()
        if nudge is not None and isinstance(input_items, list):
            input_items.append({"role": "system", "content": nudge})

    @quiet_hook
    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """The model has replied."""
        run = self._run(context, agent)
        call = run.models.pop(id(agent), None)
        if call is not None:
            run.turn.end_model(call, response.usage, text=_words(response, self._opener.watch))

    @quiet_hook
    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool is about to run."""
        run = self._run(context, agent)
        call_id = getattr(context, "tool_call_id", None)
        try:
            run.tools[call_id or tool.name] = run.turn.begin_tool(
                getattr(context, "tool_name", None) or tool.name,
                getattr(context, "tool_arguments", MISSING),
                call_id=call_id,
            )
        except TurnStopped as stopped:
            raise self._stopped(run, stopped) from None

    @quiet_hook
    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        """The tool has returned. What it raised is not told: such a call counts as an error when the turn ends."""
        run = self._run(context, agent)
        running = run.tools.pop(getattr(context, "tool_call_id", None) or tool.name, None)
        if running is None:
            return
        try:
            running.returned(result)
        except TurnStopped as stopped:
            raise self._stopped(run, stopped) from None

    def _stopped(self, run: _Run, stopped: TurnStopped) -> TurnStopped:
        run.turn.close(error=stopped)
        self._forget(run)
        return as_agents_exception(stopped)


_all: Final[weakref.WeakSet[TurnHooks]] = weakref.WeakSet()


def _end_silent() -> None:
    for hooks in list(_all):
        hooks.end_silent()


def as_agents_exception(stopped: TurnStopped) -> TurnStopped:
    """The same stop as an exception that the SDK lets pass, and adds its ``run_data`` to."""
    made = _both(type(stopped))(  # type: ignore[arg-type] # mypy takes no class for hashable
        str(stopped), stop_reason=stopped.stop_reason, partial=stopped.partial, details=stopped.details
    )
    made.run_data = None  # type: ignore[attr-defined] # of the SDK's class
    return made


@functools.cache
def _both(kind: type[TurnStopped]) -> type[TurnStopped]:
    return type(kind.__name__, (kind, AgentsException), {"__module__": __name__, "__reduce__": _as_the_plain_stop})


def _as_the_plain_stop(stopped: TurnStopped) -> tuple[Any, ...]:
    """For another process, which does not have the class that was made here: without the SDK's ``run_data``."""
    more = {"stop_reason": stopped.stop_reason, "partial": stopped.partial, "details": stopped.details}
    return type(stopped).__bases__[0], (str(stopped),), more


def _model_name(agent: Any) -> str:
    model = getattr(agent, "model", None)
    if model is None:
        return str(get_default_model())
    name = model if isinstance(model, str) else getattr(model, "model", "")
    return str(name).rpartition("/")[2]


def _words(response: Any, watch: Watch) -> str | None:
    """What the model said, where it asked for nothing."""
    try:
        kinds = {getattr(item, "type", "") for item in response.output}
        if not kinds <= {"message", "reasoning"}:
            return None
        return "".join(
            getattr(part, "text", "") for item in response.output for part in getattr(item, "content", None) or ()
        )
    except Exception:
        watch.internal_error("a model's reply")
        return None

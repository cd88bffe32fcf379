"""smolagents: step callbacks that watch and guard an agent's runs."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Unpack, final

from turnwatch.core.events import Usage
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.quiet_hook import quiet_hook
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener

try:
    from smolagents.memory import ActionStep, FinalAnswerStep, PlanningStep
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.smolagents", "smolagents") from None

_ENDS_A_TURN: Final = "final_answer"


class TurnCallbacks:
    """Watches and guards each run of an agent as one turn.

    ::

        callbacks = TurnCallbacks(on_loop="nudge", limits=Limits(max_usd=1.0))
        agent = ToolCallingAgent(tools=[...], model=model, step_callbacks=callbacks.by_step)
        callbacks.guard_managed(agent)

    A step is told of when it is over, so a limit stops the run behind the step that passed it. A stop raises
    ``TurnStopped`` out of ``run``. A nudge is put behind the step's observations, where the next request has it.

    Args:
        agent: The agent's name; its own when left out.
        conversation_id: Its conversation.
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
        self._open: weakref.WeakKeyDictionary[Any, ReportedTurn] = weakref.WeakKeyDictionary()
        self._in_first_step: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = fork_safe_lock()

    @property
    def by_step(self) -> dict[type, Any]:
        """What ``step_callbacks`` takes."""
        return {ActionStep: self._acted, PlanningStep: self._planned, FinalAnswerStep: self._answered}

    def guard_managed(self, manager: Any) -> None:
        """Have the runs of the agents that it manages pay from its budget, each as a turn below its own.

        For once the manager is made, with these callbacks. Agents that it manages are in its ``managed_agents``
        behind a function of ours from then on: no callback is told of a run before its first step is over.
        """
        for name, agent in manager.managed_agents.items():
            manager.managed_agents[name] = _Managed(agent, manager, self)

    def turn_of(self, agent: Any) -> ReportedTurn:
        """The turn of the run that this agent is in; opened in its first step, by whoever is the first to ask."""
        with self._lock:  # agents that are managed side by side run in threads
            turn = self._open.get(agent)
            starts = agent.step_number == 1 and agent not in self._in_first_step
            if turn is not None and starts:
                turn.close("error")  # the run before did not come to its end
            if turn is None or starts or (turn.is_own and turn.state.ended):
                turn = self._open[agent] = self._opener.open(getattr(agent, "name", None))
                self._in_first_step.add(agent)
            return turn

    @contextmanager
    def _reporting(self, agent: Any) -> Iterator[ReportedTurn]:
        turn = self.turn_of(agent)
        try:
            yield turn
        except TurnStopped as stopped:
            turn.close(error=stopped)
            self._open.pop(agent, None)
            self._in_first_step.discard(agent)
            raise

    @quiet_hook
    def _planned(self, step: PlanningStep, agent: Any) -> None:
        with self._reporting(agent) as turn:
            self._model_call(turn, step, agent)

    @quiet_hook
    def _acted(self, step: ActionStep, agent: Any) -> None:
        with self._reporting(agent) as turn:
            self._model_call(turn, step, agent)
            self._tool_calls(turn, step)
        self._in_first_step.discard(agent)
        nudge = turn.take_nudge()
        if nudge is not None:
            step.observations = f"{step.observations or ''}\n{nudge}"

    def _model_call(self, turn: ReportedTurn, step: Any, agent: Any) -> None:
        call = turn.begin_model(str(getattr(agent.model, "model_id", "") or ""))
        call.started = step.timing.start_time
        used = step.token_usage
        usage = None if used is None else Usage(used.input_tokens, used.output_tokens)
        turn.end_model(call, usage)

    @staticmethod
    def _tool_calls(turn: ReportedTurn, step: ActionStep) -> None:
        asked = [call for call in step.tool_calls or () if call.name != _ENDS_A_TURN]
        running = [turn.begin_tool(call.name, call.arguments, call_id=call.id, is_over=True) for call in asked]
        for one in running:
            if step.error is not None:
                one.failed_saying(step.error.message)
            else:
                one.returned(step.observations)

    @quiet_hook
    def _answered(self, step: FinalAnswerStep, agent: Any) -> None:
        turn = self._open.pop(agent, None)
        if turn is None:
            return
        if turn.is_own:
            turn.turn.answer = step.output
        last = agent.memory.steps[-1] if agent.memory.steps else None
        ran_out = type(getattr(last, "error", None)).__name__ == "AgentMaxStepsError"
        turn.close("max_iterations" if ran_out else "final_answer")


@final
class _Managed:
    """A managed agent in its manager's hands."""

    def __init__(self, agent: Any, manager: Any, callbacks: TurnCallbacks) -> None:
        self._agent = agent
        self._manager = weakref.ref(manager)
        self._callbacks = callbacks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        turn = self._callbacks.turn_of(self._manager())
        with turn.tool_runs():
            return self._agent(*args, **kwargs)

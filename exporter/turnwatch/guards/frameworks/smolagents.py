"""smolagents: step callbacks that watch and guard an agent's runs."""

from __future__ import annotations

import weakref
from typing import Any, Final, Unpack

from turnwatch.core.events import Usage
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

    @property
    def by_step(self) -> dict[type, Any]:
        """What ``step_callbacks`` takes."""
        return {ActionStep: self._acted, PlanningStep: self._planned, FinalAnswerStep: self._answered}

    def _turn(self, agent: Any, *, starts: bool = False) -> ReportedTurn:
        turn = self._open.get(agent)
        if turn is not None and starts:
            turn.close("error")  # the run before did not come to its end
        if turn is None or starts or (turn.is_own and turn.state.ended):
            turn = self._open[agent] = self._opener.open(getattr(agent, "name", None))
        return turn

    @quiet_hook
    def _planned(self, step: PlanningStep, agent: Any) -> None:
        self._model_call(self._turn(agent), step, agent)

    @quiet_hook
    def _acted(self, step: ActionStep, agent: Any) -> None:
        turn = self._turn(agent, starts=step.step_number == 1 and not self._planned_first(agent))
        try:
            self._model_call(turn, step, agent)
            self._tool_calls(turn, step)
        except TurnStopped as stopped:
            turn.close(error=stopped)
            self._open.pop(agent, None)
            raise
        nudge = turn.take_nudge()
        if nudge is not None:
            step.observations = f"{step.observations or ''}\n{nudge}"

    @staticmethod
    def _planned_first(agent: Any) -> bool:
        steps = agent.memory.steps
        return bool(steps) and isinstance(steps[-1], PlanningStep)

    def _model_call(self, turn: ReportedTurn, step: Any, agent: Any) -> None:
        call = turn.begin_model(str(getattr(agent.model, "model_id", "") or ""))
        call.started = step.timing.start_time
        used = step.token_usage
        usage = None if used is None else Usage(used.input_tokens, used.output_tokens)
        turn.end_model(call, usage)

    @staticmethod
    def _tool_calls(turn: ReportedTurn, step: ActionStep) -> None:
        asked = [call for call in step.tool_calls or () if call.name != _ENDS_A_TURN]
        running = [turn.begin_tool(call.name, call.arguments, call_id=call.id) for call in asked]
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

"""Strands Agents: a hook provider that watches and guards an agent's invocations."""

from __future__ import annotations

import weakref
from typing import Any, Literal, Unpack

from turnwatch.core.events import ModelCall
from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.quiet_hook import quiet_hook
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener
from turnwatch.sources.calls_in_progress import ToolCallInProgress

try:
    from strands.hooks import (
        AfterInvocationEvent,
        AfterModelCallEvent,
        AfterToolCallEvent,
        BeforeInvocationEvent,
        BeforeModelCallEvent,
        BeforeToolCallEvent,
        HookProvider,
        HookRegistry,
    )
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.strands", "strands") from None


class _Invocation:
    """One invocation of an agent: its turn and what is under way."""

    def __init__(self, turn: ReportedTurn) -> None:
        self.turn = turn
        self.model: ModelCall | None = None
        self.tools: dict[str, ToolCallInProgress] = {}
        self.nudged: tuple[dict[str, Any], dict[str, Any]] | None = None
        self.error: BaseException | None = None


class TurnHooks(HookProvider):
    """Watches and guards each invocation of an agent as one turn.

    ::

        agent = Agent(model=..., tools=[...], hooks=[TurnHooks(on_loop="nudge", limits=Limits(max_usd=1.0))])

    A stop cancels the model or tool call, which ends the invocation with a message that says why; ``TurnStopped`` is
    then raised. A nudge is put behind the tools' results for one request, and taken out of the history again.

    Args:
        agent: The agent's name; its own when left out.
        conversation_id: Its conversation.
        exit_behavior: "error" raises ``TurnStopped`` at the end of a stopped invocation; "end" does not.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops the turn; see ``turnwatch.turn``.
    """

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        exit_behavior: Literal["error", "end"] = "error",
        watch: Watch | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        self._opener = TurnOpener(agent, conversation_id, watch, guarding)
        self._ends = exit_behavior == "end"
        # An agent runs one invocation at a time.
        self._open: weakref.WeakKeyDictionary[Any, _Invocation] = weakref.WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Ask for the events of calls and invocations."""
        registry.add_callback(BeforeInvocationEvent, self._begin)
        registry.add_callback(BeforeModelCallEvent, self._before_model)
        registry.add_callback(AfterModelCallEvent, self._after_model)
        registry.add_callback(BeforeToolCallEvent, self._before_tool)
        registry.add_callback(AfterToolCallEvent, self._after_tool)
        registry.add_callback(AfterInvocationEvent, self._end)

    @quiet_hook
    def _begin(self, event: BeforeInvocationEvent) -> None:
        self._open[event.agent] = _Invocation(self._opener.open(getattr(event.agent, "name", None)))

    @quiet_hook
    def _before_model(self, event: BeforeModelCallEvent) -> None:
        invocation = self._open.get(event.agent)
        if invocation is None:
            return
        turn = invocation.turn
        if turn.stopped is None:
            try:
                invocation.model = turn.begin_model(_model_name(event.agent))
            except TurnStopped as stopped:
                turn.stopped = stopped
        if turn.stopped is not None:
            event.cancel = f"Stopped: {turn.stopped}"
            return
        nudge = turn.take_nudge()
        if nudge is not None and event.agent.messages:
            message, note = event.agent.messages[-1], {"text": nudge}
            message["content"].append(note)
            invocation.nudged = (message, note)

    @quiet_hook
    def _after_model(self, event: AfterModelCallEvent) -> None:
        invocation = self._open.get(event.agent)
        if invocation is None:
            return
        if invocation.nudged is not None:
            message, note = invocation.nudged
            message["content"].remove(note)
            invocation.nudged = None
        call, invocation.model = invocation.model, None
        if call is None:
            return
        invocation.error = event.exception
        reply = None if event.stop_response is None else event.stop_response.message
        content = [] if reply is None else reply["content"]
        text = "".join(block.get("text", "") for block in content)
        asks = any("toolUse" in block for block in content)
        usage = None if reply is None else reply.get("metadata", {}).get("usage")
        invocation.turn.end_model(call, usage, text=None if asks else text, error=event.exception)

    @quiet_hook
    def _before_tool(self, event: BeforeToolCallEvent) -> None:
        invocation = self._open.get(event.agent)
        if invocation is None:  # the program's own call (agent.tool.search_orders(...)), not the agent's
            return
        use = event.tool_use
        try:
            invocation.tools[use["toolUseId"]] = invocation.turn.begin_tool(
                use["name"], use["input"], call_id=use["toolUseId"], runs_here=True
            )
        except TurnStopped as stopped:
            invocation.turn.stopped = stopped
            event.cancel_tool = f"Stopped: {stopped}"

    @quiet_hook
    def _after_tool(self, event: AfterToolCallEvent) -> None:
        invocation = self._open.get(event.agent)
        if invocation is None:
            return
        running = invocation.tools.pop(event.tool_use["toolUseId"], None)
        if running is None:
            return
        content = event.result["content"]
        result = content[0]["text"] if len(content) == 1 and "text" in content[0] else content
        try:
            if event.exception is not None:
                running.failed(event.exception)
            elif event.result["status"] == "error":
                running.failed_saying(result)
            else:
                running.returned(result)
        except TurnStopped as stopped:
            invocation.turn.stopped = stopped

    @quiet_hook
    def _end(self, event: AfterInvocationEvent) -> None:
        invocation = self._open.pop(event.agent, None)
        if invocation is None:
            return
        turn = invocation.turn
        if turn.is_own and event.result is not None:
            turn.turn.answer = str(event.result)
        turn.close(error=turn.stopped or invocation.error)
        if turn.stopped is not None and not self._ends:
            raise turn.stopped


def _model_name(agent: Any) -> str:
    config = agent.model.get_config()
    return str(config.get("model_id") or "") if isinstance(config, dict) else str(getattr(config, "model_id", ""))

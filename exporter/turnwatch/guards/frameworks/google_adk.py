"""Google's Agent Development Kit: a plugin that watches and guards a runner's invocations."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Unpack

from turnwatch.core.events import ModelCall
from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.quiet_hook import quiet_hook
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener
from turnwatch.sources.calls_in_progress import ToolCallInProgress

try:
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai import types
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.google_adk", "google-adk") from None

MAX_INVOCATIONS: Final = 1_000


class _Invocation:
    """One invocation: its turn and what is under way."""

    def __init__(self, turn: ReportedTurn) -> None:
        self.turn = turn
        self.models: dict[str, ModelCall] = {}  # by agent and branch: one at a time each
        self.tools: dict[str, ToolCallInProgress] = {}


class TurnPlugin(BasePlugin):
    """Watches and guards each invocation as one turn, agents after a transfer included.

    ::

        runner = InMemoryRunner(agent=agent, plugins=[TurnPlugin(on_loop="nudge", limits=Limits(max_usd=1.0))])

    A plugin cannot raise: a stop refuses the model or tool call, and the invocation ends with an event whose text
    says why, whose ``error_code`` is the stop's reason and whose ``custom_metadata["turnwatch"]`` is the stop as a
    dictionary. ``stops`` has the exceptions themselves, with their partial results, by invocation id. A nudge is the
    last content of the model's next request, and not in the session. An agent used as a tool is a turn below, and pays
    from the budget of the invocation.

    Args:
        agent: The agent's name; that of the invocation's first agent when left out.
        conversation_id: Its conversation; the session's id when left out.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops the turn; see ``turnwatch.turn``.

    Attributes:
        stops: The stops of the latest 1,000 stopped invocations.
    """

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        watch: Watch | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        super().__init__(name="turnwatch")
        self._opener = TurnOpener(agent, conversation_id, watch, guarding)
        self._open: OrderedDict[str, _Invocation] = OrderedDict()
        self.stops: OrderedDict[str, TurnStopped] = OrderedDict()

    # The turn

    @quiet_hook
    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Open the turn."""
        self._invocation(invocation_context)

    @quiet_hook
    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Close the turn."""
        self._close(invocation_context)

    @quiet_hook
    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Close the turn of a run that failed."""
        self._close(invocation_context, error)

    def _invocation(self, context: Any) -> _Invocation:
        key = context.invocation_id
        invocation = self._open.get(key)
        if invocation is None:
            name = getattr(getattr(context, "agent", None), "name", None)
            turn = self._opener.open(name, getattr(context.session, "id", None))
            invocation = self._open[key] = _Invocation(turn)
            while len(self._open) > MAX_INVOCATIONS:
                self._open.popitem(last=False)[1].turn.close("evicted")
        return invocation

    def _close(self, context: Any, error: Exception | None = None) -> None:
        invocation = self._open.pop(context.invocation_id, None)
        if invocation is not None:
            invocation.turn.close(error=invocation.turn.stopped or error)

    def _stopped(self, context: Any, invocation: _Invocation, stopped: TurnStopped) -> None:
        invocation.turn.stopped = stopped
        self.stops[context.invocation_id] = stopped
        while len(self.stops) > MAX_INVOCATIONS:
            self.stops.popitem(last=False)

    # Model calls

    @quiet_hook
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> LlmResponse | None:
        """A model is about to be asked."""
        invocation = self._invocation(callback_context)
        turn = invocation.turn
        if turn.stopped is None:
            try:
                call = turn.begin_model(str(llm_request.model or ""), provider="gcp.gemini")
                invocation.models[callback_context.agent_name] = call
            except TurnStopped as stopped:
                self._stopped(callback_context, invocation, stopped)
        if turn.stopped is not None:
            return _last_words(turn.stopped)
        nudge = turn.take_nudge()
        if nudge is not None:
            llm_request.contents.append(types.Content(role="user", parts=[types.Part(text=nudge)]))
        return None

    @quiet_hook
    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """The model has replied, or a part of a streamed reply has come."""
        if llm_response.partial:
            return
        invocation = self._invocation(callback_context)
        call = invocation.models.pop(callback_context.agent_name, None)
        if call is None:
            return
        parts = (llm_response.content.parts if llm_response.content else None) or []
        asks = any(part.function_call for part in parts)
        text = "".join(part.text or "" for part in parts)
        invocation.turn.end_model(call, llm_response.usage_metadata, text=None if asks else text)
        if not asks and invocation.turn.is_own:
            invocation.turn.turn.answer = text

    @quiet_hook
    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        """The model call has failed."""
        invocation = self._invocation(callback_context)
        call = invocation.models.pop(callback_context.agent_name, None)
        if call is not None:
            invocation.turn.end_model(call, error=error)

    # Tool calls

    @quiet_hook
    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """A tool is about to run."""
        invocation = self._invocation(tool_context)
        call_id = tool_context.function_call_id
        try:
            invocation.tools[call_id] = invocation.turn.begin_tool(
                tool.name, tool_args, call_id=call_id, runs_here=True
            )
        except TurnStopped as stopped:
            self._stopped(tool_context, invocation, stopped)
            return {"error": f"Stopped: {stopped}"}
        return None

    @quiet_hook
    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        """The tool has returned."""
        invocation = self._invocation(tool_context)
        running = invocation.tools.pop(tool_context.function_call_id, None)
        if running is None:
            return
        try:
            if isinstance(result, dict) and set(result) == {"error"}:
                running.failed_saying(result["error"])
            else:
                running.returned(result)
        except TurnStopped as stopped:
            self._stopped(tool_context, invocation, stopped)

    @quiet_hook
    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> None:
        """The tool has raised."""
        running = self._invocation(tool_context).tools.pop(tool_context.function_call_id, None)
        if running is not None:
            running.failed(error)


def _last_words(stopped: TurnStopped) -> LlmResponse:
    return LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text=f"Stopped: {stopped}")]),
        error_code=stopped.stop_reason,
        custom_metadata={"turnwatch": stopped.to_dict()},
    )

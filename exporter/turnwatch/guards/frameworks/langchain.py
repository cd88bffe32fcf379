"""LangChain agents, LangGraph's included: a middleware for ``create_agent``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, NotRequired, Unpack

from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.langchain_messages import model_name, tool_returned, words_of
from turnwatch.guards.frameworks.reported import Replies, ReportedTurn, TurnOpener

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest
    from langchain.agents.middleware.types import AgentState, PrivateStateAttr
    from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
    from langgraph.channels.untracked_value import UntrackedValue
    from langgraph.config import get_config
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.langchain", "langchain") from None


class WatchedState(AgentState[Any]):
    """The agent's state, with the turn that is open; it is not checkpointed."""

    # A TypedDict, where LangChain is there to be seen by the type checker
    turnwatch: NotRequired[Annotated[ReportedTurn | None, UntrackedValue, PrivateStateAttr]]  # type: ignore[valid-type]


class TurnMiddleware(AgentMiddleware[WatchedState, Any, Any]):
    """Watches and guards each run of an agent as one turn.

    ::

        agent = create_agent(model, tools, middleware=[TurnMiddleware(on_loop="nudge", limits=Limits(max_usd=1.0))])

    Put it last in the list: it then sees every model call that retries make. A nudge is put behind the messages of
    the model's next request, and nowhere in the state.

    Args:
        agent: The agent's name; the one given to ``create_agent`` when left out.
        conversation_id: Its conversation; the thread's id when left out.
        exit_behavior: What a stop does. "error" raises ``TurnStopped`` out of the agent. "end" ends the run with a
            message that says why, as LangChain's own limits do; ``turnwatch.state.stop_reason`` has the reason.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops the turn; see ``turnwatch.turn``.
    """

    state_schema = WatchedState

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        exit_behavior: Literal["error", "end"] = "error",
        watch: Watch | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        super().__init__()
        self._opener = TurnOpener(agent, conversation_id, watch, guarding)
        self._ends = exit_behavior == "end"

    # The turn

    def before_agent(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        """Open the turn."""
        return {"turnwatch": self._open()}

    async def abefore_agent(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        """Open the turn."""
        return {"turnwatch": self._open()}

    def after_agent(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        """Close the turn."""
        turn = state.get("turnwatch")
        if turn is not None:
            turn.close()
        return None

    async def aafter_agent(self, state: WatchedState, runtime: Any) -> dict[str, Any] | None:
        """Close the turn."""
        return self.after_agent(state, runtime)

    def _open(self) -> ReportedTurn:
        agent = thread = None
        try:
            config = get_config()
            agent = config.get("metadata", {}).get("lc_agent_name")
            thread = config.get("configurable", {}).get("thread_id")
        except Exception:
            self._opener.watch.internal_error("the configuration of a run")
        return self._opener.open(agent, thread)

    def _turn(self, state: Any) -> ReportedTurn:
        """The open turn; a new one where a run goes on that was interrupted, or that a retry takes up again."""
        turn = state.get("turnwatch") if isinstance(state, dict) else None
        if turn is None or (turn.is_own and turn.state.ended):
            turn = self._open()
            if isinstance(state, dict):
                state["turnwatch"] = turn
        return turn

    def _ended(self, turn: ReportedTurn, stopped: TurnStopped) -> AIMessage:
        """End the turn: with the run's last message, or by raising."""
        turn.close(error=stopped)
        if not self._ends:
            raise stopped
        return AIMessage(f"Stopped: {stopped}")

    def _refused(self, turn: ReportedTurn, asked: Any, stopped: TurnStopped) -> ToolMessage:
        """Answer a tool call of a turn that ends at its next model call; or end the turn by raising."""
        if not self._ends:
            turn.close(error=stopped)
            raise stopped
        turn.stopped = stopped
        return ToolMessage(f"Stopped: {stopped}", tool_call_id=asked["id"], name=asked["name"], status="error")

    # Model calls

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Watch and guard one model call."""
        turn = self._turn(request.state)
        if turn.stopped is not None:
            return self._ended(turn, turn.stopped)
        try:
            with turn.model_call(model_name(request.model)) as replies:
                response = handler(_nudged(turn, request))
                _note(replies, response)
        except TurnStopped as stopped:
            return self._ended(turn, stopped)
        except BaseException as error:
            turn.close(error=error)
            raise
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Watch and guard one model call."""
        turn = self._turn(request.state)
        if turn.stopped is not None:
            return self._ended(turn, turn.stopped)
        try:
            with turn.model_call(model_name(request.model)) as replies:
                response = await handler(_nudged(turn, request))
                _note(replies, response)
        except TurnStopped as stopped:
            return self._ended(turn, stopped)
        except BaseException as error:
            turn.close(error=error)
            raise
        return response

    # Tool calls

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Watch and guard one tool call."""
        turn, asked = self._turn(request.state), request.tool_call
        try:
            with turn.tool_call(asked["name"], asked["args"], call_id=asked["id"]) as running:
                output = handler(request)
                tool_returned(running, output)
        except TurnStopped as stopped:
            return self._refused(turn, asked, stopped)
        except BaseException as error:
            turn.close(error=error)
            raise
        return output

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Watch and guard one tool call."""
        turn, asked = self._turn(request.state), request.tool_call
        try:
            with turn.tool_call(asked["name"], asked["args"], call_id=asked["id"]) as running:
                output = await handler(request)
                tool_returned(running, output)
        except TurnStopped as stopped:
            return self._refused(turn, asked, stopped)
        except BaseException as error:
            turn.close(error=error)
            raise
        return output


def _nudged(turn: ReportedTurn, request: ModelRequest[Any]) -> ModelRequest[Any]:
    nudge = turn.take_nudge()
    return request if nudge is None else request.override(messages=[*request.messages, SystemMessage(nudge)])


def _note(replies: Replies, response: Any) -> None:
    messages = getattr(response, "result", None) or [response]
    replies.reply = messages[0]
    replies.text = words_of(messages[0])

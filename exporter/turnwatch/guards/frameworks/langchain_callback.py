"""Any LangChain or LangGraph program: a callback handler that watches, and stops what it must."""

from __future__ import annotations

from typing import Any, Unpack
from uuid import UUID

from turnwatch.core.events import ModelCall
from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.langchain_messages import tool_returned, words_of
from turnwatch.guards.frameworks.quiet_hook import quiet_hook
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener
from turnwatch.sources.calls_in_progress import ToolCallInProgress

try:
    from langchain_core.callbacks import BaseCallbackHandler
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.langchain_callback", "langchain") from None


class TurnCallback(BaseCallbackHandler):
    """Watches and guards each run of a graph, chain or agent as one turn.

    ::

        graph.invoke(inputs, config={"callbacks": [TurnCallback(on_loop="stop")]})

    A stop is a ``TurnStopped`` out of ``invoke``. A callback cannot change what a model is sent, so the message of
    ``on_loop="nudge"`` does not reach it, and the loop is stopped one call later: ``TurnMiddleware`` can nudge.

    Args:
        agent: The agent's name; the run's own name when left out.
        conversation_id: Its conversation; the thread's id when left out.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops the turn; see ``turnwatch.turn``.
    """

    raise_error = True  # else LangChain logs a stop and goes on
    run_inline = True

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        watch: Watch | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        self._opener = TurnOpener(agent, conversation_id, watch, guarding)
        self._turns: dict[UUID, ReportedTurn] = {}  # by every run that is open
        self._models: dict[UUID, ModelCall] = {}
        self._tools: dict[UUID, ToolCallInProgress] = {}

    # Which turn a run belongs to

    def _opened(
        self, run_id: UUID, parent_run_id: UUID | None, name: object, metadata: dict[str, Any] | None
    ) -> ReportedTurn:
        turn = self._turns.get(parent_run_id) if parent_run_id is not None else None
        if turn is None:
            turn = self._opener.open(name, (metadata or {}).get("thread_id"))
        self._turns[run_id] = turn
        return turn

    def _closed(self, run_id: UUID, parent_run_id: UUID | None, error: BaseException | None = None) -> None:
        turn = self._turns.pop(run_id, None)
        if turn is not None and (parent_run_id is None or parent_run_id not in self._turns):
            turn.close(error=error)

    @quiet_hook
    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A run begins; the outermost is the turn."""
        self._opened(run_id, parent_run_id, kwargs.get("name"), metadata)

    @quiet_hook
    def on_chain_end(self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """A run has ended."""
        self._closed(run_id, parent_run_id)

    @quiet_hook
    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """A run has failed."""
        self._closed(run_id, parent_run_id, error)

    # Model calls

    @quiet_hook
    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model is about to be asked."""
        self._begin_model(run_id, parent_run_id, metadata, kwargs)

    @quiet_hook
    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A model without messages is about to be asked."""
        self._begin_model(run_id, parent_run_id, metadata, kwargs)

    def _begin_model(
        self, run_id: UUID, parent_run_id: UUID | None, metadata: dict[str, Any] | None, more: dict[str, Any]
    ) -> None:
        turn = self._opened(run_id, parent_run_id, more.get("name"), metadata)
        model = str((metadata or {}).get("ls_model_name") or "")
        try:
            self._models[run_id] = turn.begin_model(model, provider=str((metadata or {}).get("ls_provider") or ""))
        except TurnStopped as stopped:
            self._closed(run_id, parent_run_id, stopped)
            raise

    @quiet_hook
    def on_llm_end(self, response: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The model has replied."""
        call, turn = self._models.pop(run_id, None), self._turns.get(run_id)
        if call is not None and turn is not None:
            message: Any = None
            try:
                message = getattr(response.generations[0][0], "message", None)
            except Exception:
                turn.state.watch.internal_error("a model's reply")
            usage = message if getattr(message, "usage_metadata", None) else getattr(response, "llm_output", None)
            turn.end_model(call, usage, text=words_of(message))
        self._closed(run_id, parent_run_id)

    @quiet_hook
    def on_llm_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The model call has failed."""
        call, turn = self._models.pop(run_id, None), self._turns.get(run_id)
        if call is not None and turn is not None:
            turn.end_model(call, error=error)
        self._closed(run_id, parent_run_id, error)

    # Tool calls

    @quiet_hook
    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool is about to run."""
        name = str((serialized or {}).get("name") or kwargs.get("name") or "")
        turn = self._opened(run_id, parent_run_id, name, metadata)
        try:
            self._tools[run_id] = turn.begin_tool(
                name, input_str if inputs is None else inputs, call_id=kwargs.get("tool_call_id")
            )
        except TurnStopped as stopped:
            self._closed(run_id, parent_run_id, stopped)
            raise

    @quiet_hook
    def on_tool_end(self, output: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The tool has returned."""
        running = self._tools.pop(run_id, None)
        try:
            if running is not None:
                tool_returned(running, output)
        except TurnStopped as stopped:
            self._closed(run_id, parent_run_id, stopped)
            raise
        self._closed(run_id, parent_run_id)

    @quiet_hook
    def on_tool_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The tool has raised."""
        running = self._tools.pop(run_id, None)
        if running is not None:
            running.failed(error)
        self._closed(run_id, parent_run_id, error)

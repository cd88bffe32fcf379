"""Any LangChain or LangGraph program: a callback handler that watches, and stops what it must."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Unpack
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

MAX_TURNS: Final = 10_000


class _Open:
    """A turn that is open.

    Attributes:
        turn: The turn.
        outermost: The run that is the turn.
        runs: All of its runs that are open.
        models, tools: Calls that run in it, by their runs.
    """

    def __init__(self, turn: ReportedTurn, outermost: UUID) -> None:
        self.turn = turn
        self.outermost = outermost
        self.runs = {outermost}
        self.models: dict[UUID, ModelCall] = {}
        self.tools: dict[UUID, ToolCallInProgress] = {}


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
        self._runs: dict[UUID, _Open] = {}
        self._turns: dict[UUID, _Open] = {}  # by their outermost runs

    # Which turn a run belongs to

    def _opened(self, run_id: UUID, parent_run_id: UUID | None, name: object, metadata: dict[str, Any] | None) -> _Open:
        there = self._runs.get(parent_run_id) if parent_run_id is not None else None
        if there is None:
            there = self._turns[run_id] = _Open(self._opener.open(name, (metadata or {}).get("thread_id")), run_id)
            if len(self._turns) > MAX_TURNS:
                self._close(next(iter(list(self._turns.values()))), "evicted")
        there.runs.add(run_id)
        self._runs[run_id] = there
        return there

    def _closed(self, run_id: UUID, error: BaseException | None = None) -> None:
        there = self._runs.pop(run_id, None)
        if there is None:
            return
        there.runs.discard(run_id)
        if run_id == there.outermost:
            self._close(there, error=error)

    def _close(self, there: _Open, stop_reason: str = "final_answer", error: BaseException | None = None) -> None:
        """End a turn, and with it the runs that LangChain has given up: of those that are cancelled it tells nobody."""
        self._turns.pop(there.outermost, None)
        for run_id in tuple(there.runs):
            self._runs.pop(run_id, None)
        for call in tuple(there.models.values()):
            there.turn.end_model(call, error=error or asyncio.CancelledError())
        there.turn.close(stop_reason, error=error)

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
        self._closed(run_id)

    @quiet_hook
    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """A run has failed."""
        self._closed(run_id, error)

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
        there = self._opened(run_id, parent_run_id, more.get("name"), metadata)
        model, provider = ((metadata or {}).get(name) or "" for name in ("ls_model_name", "ls_provider"))
        try:
            there.models[run_id] = there.turn.begin_model(str(model), provider=str(provider))
        except TurnStopped as stopped:
            self._closed(run_id, stopped)
            raise

    @quiet_hook
    def on_llm_end(self, response: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The model has replied."""
        there = self._runs.get(run_id)
        call = None if there is None else there.models.pop(run_id, None)
        if there is not None and call is not None:
            message: Any = None
            try:
                message = getattr(response.generations[0][0], "message", None)
            except Exception:
                self._opener.watch.internal_error("a model's reply")
            usage = message if getattr(message, "usage_metadata", None) else getattr(response, "llm_output", None)
            there.turn.end_model(call, usage, text=words_of(message))
        self._closed(run_id)

    @quiet_hook
    def on_llm_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The model call has failed."""
        there = self._runs.get(run_id)
        call = None if there is None else there.models.pop(run_id, None)
        if there is not None and call is not None:
            there.turn.end_model(call, error=error)
        self._closed(run_id, error)

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
        there = self._opened(run_id, parent_run_id, name, metadata)
        try:
            there.tools[run_id] = there.turn.begin_tool(
                name, input_str if inputs is None else inputs, call_id=kwargs.get("tool_call_id")
            )
        except TurnStopped as stopped:
            self._closed(run_id, stopped)
            raise

    @quiet_hook
    def on_tool_end(self, output: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The tool has returned."""
        running = self._tool(run_id)
        try:
            if running is not None:
                tool_returned(running, output)
        except TurnStopped as stopped:
            self._closed(run_id, stopped)
            raise
        self._closed(run_id)

    @quiet_hook
    def on_tool_error(self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The tool has raised."""
        running = self._tool(run_id)
        if running is not None:
            running.failed(error)
        self._closed(run_id, error)

    def _tool(self, run_id: UUID) -> ToolCallInProgress | None:
        there = self._runs.get(run_id)
        return None if there is None else there.tools.pop(run_id, None)

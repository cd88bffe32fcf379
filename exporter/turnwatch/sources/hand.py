"""The hand interface: an agent's own code says when turns, model calls and tool calls happen."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from turnwatch.core.default import default_watch
from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.hashing import bind_arguments
from turnwatch.core.turn import TurnState
from turnwatch.core.usage import read_model, read_usage
from turnwatch.core.verdict import Verdict
from turnwatch.core.watch import Watch
from turnwatch.errors import TurnStopped
from turnwatch.sources.own_spans import OwnSpan, open_span

P = ParamSpec("P")
R = TypeVar("R")

_current: ContextVar[Turn | None] = ContextVar("turnwatch_turn", default=None)


def current_turn() -> Turn | None:
    """The turn that this code runs in, if any."""
    return _current.get()


class ModelCallInProgress:
    """One model call of a turn: tell it the usage."""

    def __init__(self, call: ModelCall) -> None:
        self._call = call

    def usage(
        self,
        reply: object = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        reasoning_tokens: int = 0,
        spend_usd: float | None = None,
    ) -> None:
        """Say what the call used.

        Args:
            reply: The provider's reply or its usage part: OpenAI, Anthropic and Gemini objects and dicts.
            input_tokens: All input tokens, cached ones included.
            output_tokens: All output tokens, reasoning included.
            cache_read_tokens: The part of the input read from the provider's cache.
            cache_write_tokens: The part of the input written to it.
            reasoning_tokens: The reasoning part of the output.
            spend_usd: Dollars, when you know better than the price list.
        """
        try:
            call = self._call
            if input_tokens is not None or output_tokens is not None:
                call.usage = Usage(
                    input_tokens or 0, output_tokens or 0, cache_read_tokens, cache_write_tokens, reasoning_tokens
                )
            elif reply is not None:
                call.usage = read_usage(reply) or call.usage
                call.model = call.model or read_model(reply) or ""
            if spend_usd is not None:
                call.spend_usd = spend_usd
        except Exception:
            default_watch().internal_error("usage")


class Turn:
    """One turn of an agent, as a context manager for ``with`` and ``async with``.

    Args:
        agent: The agent whose turn it is.
        conversation_id: Turns with the same id are judged together as well.
        hosted: The agent runs in another service; its span is a CLIENT span.
        watch: Where it counts; the process's own watch when left out.

    Attributes:
        state: The counts and verdicts.
    """

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        turn_id: str | None = None,
        hosted: bool = False,
        watch: Watch | None = None,
    ) -> None:
        self._agent = agent
        self._conversation_id = conversation_id
        self._turn_id = turn_id
        self._hosted = hosted
        self._watch = watch or default_watch()
        self._state: TurnState | None = None
        self._stop_reason: str | None = None
        self._span: OwnSpan | None = None
        self._token: Token[Turn | None] | None = None

    # What a caller reads

    @property
    def state(self) -> TurnState:
        """The turn's counts and verdicts; opened by entering the turn."""
        if self._state is None:
            raise RuntimeError("this turn is not open: use `with turnwatch.turn(...) as turn:`")
        return self._state

    @property
    def iterations(self) -> int:
        """Model calls so far, failed ones included."""
        return self.state.iterations

    @property
    def tool_calls(self) -> int:
        """Tool calls so far."""
        return self.state.tool_calls

    @property
    def spend_usd(self) -> float | None:
        """Dollars so far; None when no model call had usage and a price."""
        return self.state.spend_usd

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict so far."""
        return self.state.verdict

    @property
    def stop_reason(self) -> str | None:
        """Why the turn ended; None while it is open."""
        return self.state.stop_reason

    def explain(self) -> str:
        """Every verdict in words."""
        return self.state.explain()

    # The turn itself

    def __enter__(self) -> Turn:
        parent = _current.get()
        self._state = TurnState(
            self._agent,
            conversation_id=self._conversation_id,
            parent=parent._state if parent is not None else None,
            turn_id=self._turn_id,
            watch=self._watch,
        )
        self._token = _current.set(self)
        with self._guarded("the turn's span"):
            attributes = {"gen_ai.agent.name": self._agent or "unknown"}
            if self._state.conversation_id is not None:
                attributes["gen_ai.conversation.id"] = self._state.conversation_id
            self._span = self._open_span("agent.turn", "invoke_agent", attributes, client=self._hosted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state = self.state
        reason = self._stop_reason or _stop_reason(error)
        state.end(reason)
        if self._token is not None:
            try:
                _current.reset(self._token)
            except ValueError:  # left in another context than it was entered in, as generators can
                _current.set(None)
            self._token = None
        span, self._span = self._span, None
        if span is not None:
            with self._guarded("the turn's span"):
                span.set({"agent.iterations": state.iterations, "agent.stop_reason": state.stop_reason or reason})
                if state.verdict is not None:
                    span.set(_verdict_attributes(state.verdict))
            with self._guarded("the turn's span"):
                span.end(type(error).__name__ if isinstance(error, Exception) else None)

    async def __aenter__(self) -> Turn:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def stop(self, stop_reason: str) -> None:
        """Say why the turn will end, before it does: one of the closed set of stop reasons."""
        self._stop_reason = stop_reason

    # Model calls

    @contextmanager
    def model_call(self, model: str = "", *, provider: str = "") -> Iterator[ModelCallInProgress]:
        """Wrap one model call: ``with turn.model_call("claude-sonnet-4-5") as call: ...; call.usage(reply)``.

        Args:
            model: The model asked for.
            provider: The provider's id, when the model's name does not say it.
        """
        state = self.state
        call = ModelCall(model, provider=provider, started=self._watch.clock())
        iteration = state.begin_model(call.started)
        span: OwnSpan | None = None
        with self._guarded("a model call's span"):
            attributes: dict[str, str | int | float | bool] = {"iteration": iteration}
            if model:
                attributes["gen_ai.request.model"] = model
            if provider:
                attributes["gen_ai.provider.name"] = provider
            span = self._open_span("llm.chat", "chat", attributes, client=True)
        error_type: str | None = None
        try:
            yield ModelCallInProgress(call)
        except BaseException as error:
            call.outcome, error_type = "error", type(error).__name__
            raise
        finally:
            call.error_type = error_type
            verdict = state.end_model(call)
            with self._guarded("a model call's span"):
                if span is not None:
                    if call.usage is not None:
                        span.set(_usage_attributes(call.usage))
                    span.end(error_type)
                self._announce(verdict)

    # Tool calls

    def call_tool(self, name: str, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
        """Run a tool and count the call.

        Args:
            name: The tool's name as the model knows it.
            fn: What runs it.
            *args: Its arguments, passed on unchanged.
            **kwargs: Its arguments, passed on unchanged.

        Returns:
            What ``fn`` returns. What it raises passes through unchanged.
        """
        call, span = self._begin_tool(name, fn, args, kwargs)
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            self._end_tool(call, span, error=error)
            raise
        self._end_tool(call, span, result=result)
        return result

    async def acall_tool(self, name: str, fn: Callable[..., Awaitable[R]], /, *args: Any, **kwargs: Any) -> R:
        """Run a coroutine function as a tool and count the call. See ``call_tool``."""
        call, span = self._begin_tool(name, fn, args, kwargs)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            self._end_tool(call, span, error=error)
            raise
        self._end_tool(call, span, result=result)
        return result

    def _begin_tool(
        self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[ToolCall, OwnSpan | None]:
        call = ToolCall(name, agent=self._agent, started=self._watch.clock())
        span: OwnSpan | None = None
        with self._guarded("a tool call"):
            call.args = bind_arguments(fn, args, kwargs)
            state = self.state
            state.begin_call(call)
            span = self._open_span(
                "tool.execute",
                "execute_tool",
                {
                    "tool.name": name,
                    "gen_ai.tool.name": name,
                    "tool.input_hash": call.input_hash or "",
                    "iteration": state.iterations,
                },
            )
        return call, span

    def _end_tool(
        self,
        call: ToolCall,
        span: OwnSpan | None,
        *,
        result: object = None,
        error: BaseException | None = None,
    ) -> None:
        with self._guarded("a tool call"):
            if error is None:
                call.result = Evidence.of(result)
            else:
                call.outcome, call.error_type = "error", type(error).__name__
                call.result = Evidence.of(f"{type(error).__name__}: {error}")
            verdict = self.state.end_call(call)
            if span is not None:
                started, ended = call.started or 0.0, call.ended or 0.0
                span.set({"latency_ms": round((ended - started) * 1000, 3), "tool.result_size": call.result.size})
            self._announce(verdict)
        with self._guarded("a tool call's span"):
            if span is not None:
                span.end(call.error_type)

    # Shared by the above

    def _open_span(
        self, name: str, operation: str, attributes: dict[str, Any], *, client: bool = False
    ) -> OwnSpan | None:
        if not self._watch.settings.spans:
            return None
        return open_span(name, operation, attributes, client=client, parent=self._span)

    def _announce(self, verdict: Verdict | None) -> None:
        if verdict is not None and self._span is not None:
            self._span.set(_verdict_attributes(verdict))
            self._span.event(
                "loop.detected",
                {**_verdict_attributes(verdict), "loop.severity": verdict.severity, "loop.clears": verdict.clears},
            )

    @contextmanager
    def _guarded(self, where: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._watch.internal_error(where)


def _stop_reason(error: BaseException | None) -> str:
    if error is None:
        return "final_answer"
    if isinstance(error, TurnStopped):
        return error.stop_reason
    if isinstance(error, KeyboardInterrupt | GeneratorExit) or type(error).__name__ == "CancelledError":
        return "user_cancelled"
    return "error"


def _verdict_attributes(verdict: Verdict) -> dict[str, str | bool]:
    return {"loop.detected": True, "loop.reason": verdict.reason, "loop.kind": verdict.kind}


def _usage_attributes(usage: Usage) -> dict[str, int]:
    attributes = {"gen_ai.usage.input_tokens": usage.input, "gen_ai.usage.output_tokens": usage.output}
    if usage.cache_read:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read
    if usage.cache_write:
        attributes["gen_ai.usage.cache_write.input_tokens"] = usage.cache_write
    if usage.reasoning:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
    return attributes


def turn(
    agent: str = "",
    conversation_id: str | None = None,
    *,
    turn_id: str | None = None,
    hosted: bool = False,
    watch: Watch | None = None,
) -> Turn:
    """One turn of an agent: ``with turnwatch.turn(agent="support-bot", conversation_id="c-17") as turn: ...``.

    A turn opened inside another becomes its child: it has counts of its own, and its dollars and tokens
    go into the parent's totals.

    Args:
        agent: The agent's name; a label of its metrics.
        conversation_id: Turns with the same id are judged together as well. Never a label.
        turn_id: An id of your own.
        hosted: The agent runs in another service.
        watch: Where it counts; the process's own watch when left out.
    """
    return Turn(agent, conversation_id, turn_id=turn_id, hosted=hosted, watch=watch)


def watch_tool(fn: Callable[P, R] | None = None, /, *, name: str | None = None) -> Any:
    """Decorate a function or coroutine function, so that every call in a turn is counted as a tool call.

    Outside a turn the function runs as if it were not decorated.

    Args:
        fn: The function, when used without parentheses.
        name: The tool's name, when not the function's own.
    """

    def decorate(tool: Callable[..., Any]) -> Callable[..., Any]:
        tool_name: str = name or getattr(tool, "__name__", type(tool).__name__)
        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def watched_async(*args: Any, **kwargs: Any) -> Any:
                turn = _current.get()
                if turn is None:
                    return await tool(*args, **kwargs)
                return await turn.acall_tool(tool_name, tool, *args, **kwargs)

            return watched_async

        @functools.wraps(tool)
        def watched(*args: Any, **kwargs: Any) -> Any:
            turn = _current.get()
            if turn is None:
                return tool(*args, **kwargs)
            return turn.call_tool(tool_name, tool, *args, **kwargs)

        return watched

    return decorate if fn is None else decorate(fn)


def watch_turn(
    fn: Callable[P, R] | None = None,
    /,
    *,
    agent: str = "",
    conversation_id: str | Callable[..., str | None] | None = None,
) -> Any:
    """Decorate a function or coroutine function, so that every call of it is one turn.

    Args:
        fn: The function, when used without parentheses.
        agent: The agent's name; the function's own name when left out.
        conversation_id: The conversation, or what tells it from the function's arguments.
    """

    def decorate(run: Callable[..., Any]) -> Callable[..., Any]:
        agent_name: str = agent or getattr(run, "__name__", type(run).__name__)

        def conversation(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
            return conversation_id(*args, **kwargs) if callable(conversation_id) else conversation_id

        if inspect.iscoroutinefunction(run):

            @functools.wraps(run)
            async def turn_async(*args: Any, **kwargs: Any) -> Any:
                async with turn(agent_name, conversation(args, kwargs)):
                    return await run(*args, **kwargs)

            return turn_async

        @functools.wraps(run)
        def turn_sync(*args: Any, **kwargs: Any) -> Any:
            with turn(agent_name, conversation(args, kwargs)):
                return run(*args, **kwargs)

        return turn_sync

    return decorate if fn is None else decorate(fn)

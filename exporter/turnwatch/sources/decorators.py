"""Functions as tools and turns: decorators over the hand interface."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar, Unpack, overload

from turnwatch.core.coroutines import is_coroutine_function
from turnwatch.core.default import default_watch
from turnwatch.core.guard import Guarding, check_keywords
from turnwatch.core.quietly import Quietly
from turnwatch.sources.hand import current_turn, turn
from turnwatch.sources.own_context import async_in_own_context, in_own_context

F = TypeVar("F")
"""What is decorated: a function, or a static or class method. It is typed as before."""


@overload
def watch_tool(fn: F, /) -> F: ...
@overload
def watch_tool(*, name: str | None = None) -> Callable[[F], F]: ...
def watch_tool(fn: Any = None, /, *, name: str | None = None) -> Any:
    """Decorate a function or coroutine function, so that every call in a turn is counted as a tool call.

    Outside a turn the function runs as if it were not decorated. Static and class methods may be decorated above or
    below ``@staticmethod`` and ``@classmethod``.

    Args:
        fn: The function, when used without parentheses.
        name: The tool's name, when not the function's own.
    """

    def decorate(tool: Any) -> Any:
        if isinstance(tool, staticmethod | classmethod):
            return type(tool)(decorate(tool.__func__))
        tool_name: str = getattr(tool, "__name__", type(tool).__name__) if name is None else name
        if is_coroutine_function(tool):

            @functools.wraps(tool)
            async def watched_async(*args: Any, **kwargs: Any) -> Any:
                running = current_turn()
                if running is None:
                    return await tool(*args, **kwargs)
                return await running.acall_tool(tool_name, tool, *args, **kwargs)

            return watched_async

        @functools.wraps(tool)
        def watched(*args: Any, **kwargs: Any) -> Any:
            running = current_turn()
            if running is None:
                return tool(*args, **kwargs)
            return running.call_tool(tool_name, tool, *args, **kwargs)

        return watched

    return decorate if fn is None else decorate(fn)


@overload
def watch_turn(fn: F, /) -> F: ...
@overload
def watch_turn(
    *,
    agent: str = "",
    conversation_id: str | Callable[..., str | None] | None = None,
    **guarding: Unpack[Guarding],
) -> Callable[[F], F]: ...
def watch_turn(
    fn: Any = None,
    /,
    *,
    agent: str = "",
    conversation_id: str | Callable[..., str | None] | None = None,
    **guarding: Unpack[Guarding],
) -> Any:
    """Decorate a function or coroutine function, so that every call of it is one turn.

    The turn of a generator, plain or asynchronous, lasts from its first step to its last. Its steps run in a context
    of their own: what the caller does between them is not in the turn, and what it sets in its context then is not
    seen by the generator.

    Args:
        fn: The function, when used without parentheses.
        agent: The agent's name; the function's own name when left out.
        conversation_id: The conversation, or what tells it from the function's arguments. Where that raises, the
            fault is counted and the turn has none.
        **guarding: What stops the turn; see ``turn``.

    Raises:
        TypeError: There is no such keyword.
    """
    check_keywords(guarding)

    def decorate(run: Any) -> Any:
        if isinstance(run, staticmethod | classmethod):
            return type(run)(decorate(run.__func__))
        agent_name: str = agent or getattr(run, "__name__", type(run).__name__)

        def conversation(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
            if not callable(conversation_id):
                return conversation_id
            with Quietly(default_watch(), "the conversation of a decorated turn"):
                return conversation_id(*args, **kwargs)
            return None

        if inspect.isasyncgenfunction(run):

            @functools.wraps(run)
            @async_in_own_context
            @asynccontextmanager
            async def turn_async_stream(*args: Any, **kwargs: Any) -> Any:
                async with (
                    turn(agent_name, conversation(args, kwargs), **guarding),
                    aclosing(run(*args, **kwargs)) as steps,
                ):
                    yield steps

            return turn_async_stream

        if inspect.isgeneratorfunction(run):

            @functools.wraps(run)
            @in_own_context
            def turn_stream(*args: Any, **kwargs: Any) -> Any:
                with turn(agent_name, conversation(args, kwargs), **guarding):
                    return (yield from run(*args, **kwargs))

            return turn_stream

        if is_coroutine_function(run):

            @functools.wraps(run)
            async def turn_async(*args: Any, **kwargs: Any) -> Any:
                async with turn(agent_name, conversation(args, kwargs), **guarding):
                    return await run(*args, **kwargs)

            return turn_async

        @functools.wraps(run)
        def turn_sync(*args: Any, **kwargs: Any) -> Any:
            with turn(agent_name, conversation(args, kwargs), **guarding):
                return run(*args, **kwargs)

        return turn_sync

    return decorate if fn is None else decorate(fn)

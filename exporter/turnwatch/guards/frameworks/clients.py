"""``wrap(client)``: the clients of OpenAI and Anthropic, watched and guarded at the one place all requests pass.

The client library is not imported: a client is known by its ``request`` method, which every call of it, streamed,
parsed or raw, goes through.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, Unpack

from turnwatch.core.current_call import current_call, running
from turnwatch.core.events import ModelCall
from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.guards.frameworks.client_turns import Begun, ClientTurns
from turnwatch.guards.frameworks.wire_formats import format_of

C = TypeVar("C")

_WRAPPED = "_turnwatch_turns"


def wrap(
    client: C,
    agent: str = "",
    conversation_id: str | None = None,
    *,
    watch: Watch | None = None,
    **guarding: Unpack[Guarding],
) -> C:
    """Watch and guard every model call of an OpenAI or Anthropic client, sync or async.

    ::

        client = turnwatch.wrap(OpenAI(), agent="support-bot", on_loop="nudge")

    Tool calls are read from the replies, and their results from the requests that follow. Within ``with
    turnwatch.turn(...)`` they belong to that turn. Elsewhere a turn begins with each request that brings no tool
    results, and ends with the reply that asks for no tool.

    Chat Completions, Responses and Messages are understood, streamed or not; other requests pass untouched. A
    nudge is put into the next request, after the tool results. A stop raises ``TurnStopped`` from the call that
    would have gone on.

    Args:
        client: The client. It is changed in place; clients made from it with ``with_options`` are wrapped as well. One
            that is wrapped already stays as it is.
        agent: The agent's name, for turns that begin here.
        conversation_id: Their conversation.
        watch: Where they count; the process's own watch when left out.
        **guarding: What stops them; see ``turnwatch.turn``.

    Returns:
        The same client.

    Raises:
        TypeError: It is no client of OpenAI's or Anthropic's.
    """
    if not callable(getattr(client, "request", None)) or not callable(getattr(client, "post", None)):
        raise TypeError("wrap takes a client of the OpenAI or Anthropic library")
    if getattr(client, _WRAPPED, None) is None:
        _wrap(client, ClientTurns(agent, conversation_id, watch, guarding))
    return client


def _wrap(client: Any, turns: ClientTurns) -> None:
    setattr(client, _WRAPPED, turns)
    inner = client.request
    client.request = _async_request(inner, turns) if inspect.iscoroutinefunction(inner) else _request(inner, turns)
    copy = getattr(client, "copy", None)
    if callable(copy):

        @functools.wraps(copy)
        def wrapped_copy(*args: Any, **kwargs: Any) -> Any:
            made = copy(*args, **kwargs)
            _wrap(made, turns)
            return made

        client.copy = client.with_options = wrapped_copy


def _request(inner: Any, turns: ClientTurns) -> Any:
    @functools.wraps(inner)
    def request(cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        begun = _begin(turns, options)
        if begun is None:
            return inner(cast_to, options, *args, **kwargs)
        with _sending(turns, begun):
            result = inner(cast_to, _sent(options, begun), *args, **kwargs)
        reply = _parsed(result, begun)
        if _is_streamed(reply):
            reply._iterator = _streamed(reply._iterator, turns, begun)
            next(reply._iterator)
        else:
            turns.replied(begun.turn, begun.call, reply)
        return result

    return request


def _async_request(inner: Any, turns: ClientTurns) -> Any:
    @functools.wraps(inner)
    async def request(cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
        begun = _begin(turns, options)
        if begun is None:
            return await inner(cast_to, options, *args, **kwargs)
        with _sending(turns, begun):
            result = await inner(cast_to, _sent(options, begun), *args, **kwargs)
        reply = _parsed(result, begun)
        if _is_streamed(reply):
            reply._iterator = _async_streamed(reply._iterator, turns, begun)
            await anext(reply._iterator)
        else:
            turns.replied(begun.turn, begun.call, reply)
        return result

    return request


def _begin(turns: ClientTurns, options: Any) -> Begun | None:
    """Take a request in; None for one that is no model call, or that is counted nearer to the agent."""
    body = getattr(options, "json_data", None)
    if not isinstance(body, Mapping) or str(getattr(options, "method", "")).lower() != "post":
        return None
    if isinstance(current_call(), ModelCall):
        return None
    wire_format = format_of(str(getattr(options, "url", "")))
    return None if wire_format is None else turns.begin(wire_format, body)


def _sent(options: Any, begun: Begun) -> Any:
    if begun.body is options.json_data:
        return options
    options = options.model_copy()
    options.json_data = begun.body
    return options


def _parsed(result: Any, begun: Begun) -> Any:
    """The reply inside a raw response, which parses once and remembers it; else the result itself."""
    if type(result).__name__ != "LegacyAPIResponse":
        return result
    try:
        return result.parse()
    except Exception:  # the caller will meet it when parsing for itself
        begun.turn.reported.state.watch.internal_error("a raw response")
        return None


def _is_streamed(reply: Any) -> bool:
    return hasattr(reply, "_iterator") and (hasattr(reply, "__next__") or hasattr(reply, "__anext__"))


def _streamed(events: Iterator[Any], turns: ClientTurns, begun: Begun) -> Iterator[Any]:
    with _receiving(turns, begun) as take:
        yield None  # taken at once: a generator that has not begun is not told when it is thrown away
        for event in events:
            take(event)
            yield event


async def _async_streamed(events: AsyncIterator[Any], turns: ClientTurns, begun: Begun) -> AsyncIterator[Any]:
    with _receiving(turns, begun) as take:
        yield None
        async for event in events:
            take(event)
            yield event


@contextmanager
def _sending(turns: ClientTurns, begun: Begun) -> Iterator[None]:
    """The request is under way; an exception means that no reply came."""
    try:
        with running(begun.call):
            yield
    except BaseException as error:
        turns.failed(begun.turn, begun.call, error)
        raise


@contextmanager
def _receiving(turns: ClientTurns, begun: Begun) -> Iterator[Callable[[Any], None]]:
    """The events of a streamed reply come in; each is told to what is yielded."""
    streamed = begun.turn.wire_format.streamed()
    try:
        yield functools.partial(begun.turn.add, streamed)
    except GeneratorExit:
        turns.replied(begun.turn, begun.call, streamed.reply(), abandoned=True)
        raise
    except BaseException as error:
        turns.failed(begun.turn, begun.call, error)
        raise
    turns.replied(begun.turn, begun.call, streamed.reply())

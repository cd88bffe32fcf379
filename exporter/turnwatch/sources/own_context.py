"""Steps of a generator or coroutine in a context of their own, whoever takes them, and from whatever thread.

A generator shares its caller's context: what it sets there at one step is there for whatever the caller does before
the next one, another generator's steps included, and is gone where the caller takes each step in a context of its
own, as web servers do that stream from a thread pool.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from contextvars import Context, copy_context
from typing import Any, ParamSpec, TypeVar, final

P = ParamSpec("P")
Y = TypeVar("Y")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")


@final
class _Steps(Generator[Y, S, R]):
    """The steps of a generator or coroutine, each taken in one context."""

    __slots__ = ("_context", "_steps")

    def __init__(self, steps: Generator[Y, S, R] | Coroutine[Y, S, R], context: Context) -> None:
        self._steps = steps
        self._context = context

    def send(self, value: S) -> Y:
        return self._context.run(self._steps.send, value)

    def throw(self, *thrown: Any) -> Y:
        return self._context.run(self._steps.throw, *thrown)

    def __await__(self) -> Generator[Y, S, R]:
        return self


def in_own_context(fn: Callable[P, Generator[Y, S, R]]) -> Callable[P, Generator[Y, S, R]]:
    """Decorate a generator function: the steps of each of its generators run in a copy of the first one's context."""

    def stepped(*args: P.args, **kwargs: P.kwargs) -> Generator[Y, S, R]:
        return (yield from _Steps(fn(*args, **kwargs), copy_context()))

    return stepped


@final
class _Within(AbstractAsyncContextManager[T]):
    """An asynchronous context manager that is entered and left in one context."""

    __slots__ = ("_context", "_manager")

    def __init__(self, manager: AbstractAsyncContextManager[T], context: Context) -> None:
        self._manager = manager
        self._context = context

    async def __aenter__(self) -> T:
        return await _Steps(self._manager.__aenter__(), self._context)

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await _Steps(self._manager.__aexit__(*raised), self._context)


def async_in_own_context(
    opened: Callable[P, AbstractAsyncContextManager[AsyncGenerator[Y, S]]],
) -> Callable[P, AsyncGenerator[Y, S]]:
    """The same for an asynchronous generator, given as what opens it and closes it again.

    What is sent and thrown arrives in it, for which asynchronous generators have no ``yield from``.
    """

    async def stepped(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Y, S]:
        context = copy_context()
        async with _Within(opened(*args, **kwargs), context) as steps:
            ahead: Coroutine[Any, Any, Y] = steps.__anext__()
            while True:
                try:
                    step = await _Steps(ahead, context)
                except StopAsyncIteration:
                    return
                try:
                    ahead = steps.asend((yield step))
                except GeneratorExit:  # nobody wants another step
                    raise
                except BaseException as thrown:
                    ahead = steps.athrow(thrown)

    return stepped

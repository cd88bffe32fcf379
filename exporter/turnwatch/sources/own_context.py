"""Steps of a generator or coroutine in a context of their own, whoever takes them, and from whatever thread.

A generator shares its caller's context: what it sets there at one step is there for whatever the caller does before
the next one, another generator's steps included, and is gone where the caller takes each step in a context of its
own, as web servers do that stream from a thread pool.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any, ParamSpec, TypeVar, final

P = ParamSpec("P")
Y = TypeVar("Y")
S = TypeVar("S")
R = TypeVar("R")


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


def async_in_own_context(fn: Callable[P, AsyncGenerator[Y, None]]) -> Callable[P, AsyncGenerator[Y, None]]:
    """The same for an asynchronous generator function."""

    async def stepped(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Y, None]:
        steps, context = fn(*args, **kwargs), copy_context()
        try:
            while True:
                try:
                    step = await _Steps(steps.__anext__(), context)
                except StopAsyncIteration:
                    return
                yield step
        finally:
            await _Steps(steps.aclose(), context)

    return stepped

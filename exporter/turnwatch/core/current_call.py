"""Which call is being counted right now, so that whatever else sees the same call leaves it alone.

The hand interface and framework hooks put it here while a call runs; a wrapped client and the span processor,
which see the call from further inside, look.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from turnwatch.core.events import ModelCall, ToolCall

_current: Final[ContextVar[ModelCall | ToolCall | None]] = ContextVar("turnwatch_call", default=None)


def current_call() -> ModelCall | ToolCall | None:
    """The innermost call that is being counted in this context, if any."""
    return _current.get()


@contextmanager
def running(call: ModelCall | ToolCall) -> Iterator[None]:
    """Say that this call is being counted while the block runs."""
    token = _current.set(call)
    try:
        yield
    finally:
        try:
            _current.reset(token)
        except ValueError:  # left in another context than it was entered in, as generators can
            if _current.get() is call:
                _current.set(None)

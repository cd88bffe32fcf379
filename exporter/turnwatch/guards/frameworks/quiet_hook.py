"""A hook of ours that a framework calls: a fault in it costs what it would have counted, and never the agent's run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from turnwatch.errors import TurnStopped
from turnwatch.guards.frameworks.reported import TurnOpener

F = TypeVar("F", bound=Callable[..., Any])


def quiet_hook(hook: F) -> F:
    """Decorate a hook: of what it raises only a stop comes out; anything else is counted, and the hook gives None.

    For methods, of objects with an ``_opener``, that are told of a call. One that makes the call itself would keep the
    call's own exceptions, too.
    """
    if inspect.iscoroutinefunction(hook):

        @functools.wraps(hook)
        async def quietly_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            with _counting_faults(self._opener):
                return await hook(self, *args, **kwargs)
            return None

        return cast("F", quietly_async)

    @functools.wraps(hook)
    def quietly(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _counting_faults(self._opener):
            return hook(self, *args, **kwargs)
        return None

    return cast("F", quietly)


@contextmanager
def _counting_faults(opener: TurnOpener) -> Iterator[None]:
    try:
        yield
    except TurnStopped:
        raise
    except Exception:
        opener.watch.internal_error("a framework's hook")

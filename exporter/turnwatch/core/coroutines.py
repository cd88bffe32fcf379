"""Does calling this give a coroutine?"""

from __future__ import annotations

import inspect


def is_coroutine_function(fn: object) -> bool:
    """Whether this is a coroutine function, or an object that is called as one."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)

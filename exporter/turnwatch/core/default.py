"""The one watch a process has unless it is told otherwise. Tests replace it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from turnwatch.core.forking import fork_safe_lock

if TYPE_CHECKING:
    from turnwatch.core.watch import Watch

_lock = fork_safe_lock()
_watch: Watch | None = None
_factory: Callable[[], Watch] | None = None


def install_factory(factory: Callable[[], Watch]) -> None:
    """Say how the default watch is made when it is first needed."""
    global _factory
    _factory = factory


def default_watch() -> Watch:
    """The process's watch, made on first use."""
    global _watch
    if _watch is None:
        with _lock:
            if _watch is None:
                if _factory is None:  # only the core is imported: count nowhere
                    from turnwatch.core.watch import Watch

                    _watch = Watch()
                else:
                    _watch = _factory()
    return _watch


def known_watch() -> Watch | None:
    """The process's watch, if it has been made."""
    return _watch


def set_default_watch(watch: Watch | None) -> None:
    """Replace the process's watch; None makes the next use build a fresh one."""
    global _watch
    with _lock:
        _watch = watch

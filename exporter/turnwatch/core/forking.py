"""Locks for what may be asked for at any moment: over a fork, and from inside the garbage collector.

A thread that held a lock is not there in the child to open it again. And the collector may run while a thread holds
one, end a generator that somebody has left in the middle of a turn, and with it the turn, which wants the same lock.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import Final

# What is done under such a lock takes microseconds, unless the forking thread itself holds it.
_PATIENCE_SECONDS: Final = 1.0

_all: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
_quiet: weakref.WeakSet[threading.RLock] = weakref.WeakSet()
_held: list[threading.RLock] = []


def fork_safe_lock(*, quiet: bool = False) -> threading.RLock:
    """A lock that a forked child finds open, and that its holder may take once more.

    Args:
        quiet: A fork waits until nobody holds it, so that the child's copy of what it guards is whole. Only for
            locks under which no other such lock is taken.
    """
    lock = threading.RLock()
    _all.add(lock)
    if quiet:
        _quiet.add(lock)
    return lock


_shared: Final = tuple(fork_safe_lock() for _ in range(64))
_turn: Final = itertools.count()


def shared_lock() -> threading.RLock:
    """One of a few fork-safe locks, for objects too many to have one each. Nobody may hold two of them at once."""
    return _shared[next(_turn) % len(_shared)]


def _before() -> None:
    _held.extend(lock for lock in list(_quiet) if lock.acquire(timeout=_PATIENCE_SECONDS))


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    _held.clear()
    for lock in list(_all):
        lock._at_fork_reinit()  # type: ignore[attr-defined] # the stubs lack it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)

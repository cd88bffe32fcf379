"""Locks over a fork: a thread that held one is not there in the child to open it again."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import Final

# What is done under such a lock takes microseconds, unless the forking thread itself holds it.
_PATIENCE_SECONDS: Final = 1.0

_all: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_quiet: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_held: list[threading.Lock] = []


def fork_safe_lock(*, quiet: bool = False) -> threading.Lock:
    """A lock that a forked child finds open.

    Args:
        quiet: A fork waits until nobody holds it, so that the child's copy of what it guards is whole. Only for
            locks under which no other such lock is taken.
    """
    lock = threading.Lock()
    _all.add(lock)
    if quiet:
        _quiet.add(lock)
    return lock


_shared: Final = tuple(fork_safe_lock() for _ in range(64))
_turn: Final = itertools.count()


def shared_lock() -> threading.Lock:
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

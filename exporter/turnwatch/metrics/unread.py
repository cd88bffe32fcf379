"""Says when nobody reads what a process counts: its parent serves the page, and a fork copies no counts back."""

from __future__ import annotations

import errno
import logging
import os
from typing import Final

from turnwatch.core.default import known_watch
from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.metrics.multiprocess import multiprocess_dir

WORKERS: Final = "https://github.com/turnwatch/turnwatch/blob/main/docs/metrics.md#workers-of-one-server"

logger = logging.getLogger("turnwatch")

# The process that has opened a port for its own counts; a fork of it has neither its thread nor its ears.
_served_in: int | None = None


def is_served() -> None:
    """Note that this process serves its counts on a port, so that what is forked from it can be warned."""
    global _served_in
    if _served_in is None and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_listen)
    _served_in = os.getpid()


def why_taken(error: OSError) -> str:
    """Why a port could not be opened, and what to do where another worker of the same server has it."""
    hint = f"; workers of one server share a page: {WORKERS}" if error.errno == errno.EADDRINUSE else ""
    return f"{error.strerror}{hint}"


def _listen() -> None:
    watch = known_watch()
    if watch is not None and multiprocess_dir() is None:
        watch.listeners.append(_Unread(watch))


class _Unread:
    """Waits for the first call or turn that counts: most forks have no agents and need no warning."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        self._say_once()

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        self._say_once()

    def turn_ended(self, turn: TurnState) -> None:
        self._say_once()

    def _say_once(self) -> None:
        self._watch.listeners = [listener for listener in self._watch.listeners if listener is not self]
        if _served_in != os.getpid():
            logger.error(
                "This process (%d) was forked from the one that serves /metrics (%d), and nothing of what it counts is "
                "on that page: its turns are not watched. Set PROMETHEUS_MULTIPROC_DIR before the first one starts: %s",
                os.getpid(),
                _served_in,
                WORKERS,
            )

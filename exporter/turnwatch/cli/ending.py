"""How a command ends when it is stopped, or when something cannot be read or written."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import Final, NoReturn

import typer

from turnwatch.errors import TurnwatchError

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""
NOBODY_READS: Final = 141
"""Exit code when whoever read the output has gone: 1 may have another meaning."""

_ENDING: Final = ("SIGTERM", "SIGHUP")
_WRITING: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _ToldToEndError(BaseException):
    """A signal asked for the end. Nothing that handles errors may take it for one."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def ending_like_a_filter() -> Iterator[None]:
    """Let a command end as a filter does, with its temporary files gone and the terminal as it was.

    Ctrl-C, SIGTERM, SIGHUP, and a reader of standard output that has gone, end it with the exit codes of a shell. What
    standard output's encoding does not have is written as "?".

    Raises:
        TurnwatchError: Something could not be read or written. The message says what.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with _signals_that_unwind():
            yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except _ToldToEndError as told:
        raise typer.Exit(128 + told.number) from None
    except BrokenPipeError:
        _give_up_output()
        raise typer.Exit(NOBODY_READS) from None
    except (OSError, sqlite3.OperationalError) as error:
        _give_up_output()
        raise TurnwatchError(_said_of(error)) from None


def _said_of(error: OSError | sqlite3.OperationalError) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    name = getattr(error, "filename", None)
    if name is not None:
        return f"{name}: {said}"
    if isinstance(error, sqlite3.OperationalError) or error.errno in _WRITING:
        return f"standard output or a temporary file cannot be written: {said}"
    return said


@contextmanager
def _signals_that_unwind() -> Iterator[None]:
    """Let what would end the process at once (with the cursor hidden, for one) leave every context first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What nohup has set to be passed over stays so.
    numbers = [number for name in _ENDING if (number := getattr(signal, name, None)) is not None]
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise _ToldToEndError(number)


def _give_up_output() -> None:
    """Keep the interpreter from saying once more, when it flushes standard output at its end, that it cannot."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

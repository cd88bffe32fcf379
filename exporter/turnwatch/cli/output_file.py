"""Refuses files that a command had better not write, before it reads for an hour."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from turnwatch.errors import TurnwatchError
from turnwatch.sources.compressed import BROKEN, open_file
from turnwatch.sources.detection import find_out


def refuse_unfit(outputs: Iterable[Path | None], inputs: Iterable[Path]) -> None:
    """Refuse a file to be written that is to be read, too, or holds runs, or cannot be written.

    Args:
        outputs: What is to be written; None where nothing is.
        inputs: What is to be read, as named.

    Raises:
        TurnwatchError: One of them is unfit. The message names it.
    """
    read = list(inputs)
    for path in outputs:
        if path is None:
            continue
        if path == Path("-"):
            raise TurnwatchError("-: the name of a file to write is needed")
        if any(_is_the_same(path, other) for other in read):
            raise TurnwatchError(f"{path}: is to be read, and would be written over")
        if path.is_file() and _holds_runs(path):  # in a folder that is to be read, or any other: no report is worth it
            raise TurnwatchError(f"{path}: holds runs of agents, and would be written over")
        fault = _why_not(path)
        if fault is not None:
            raise TurnwatchError(f"{path}: cannot be written: {os.strerror(fault)}")


def _why_not(path: Path) -> int | None:
    """The number of the error that writing would bring."""
    if not path.parent.is_dir():
        return errno.ENOENT
    if path.is_dir():
        return errno.EISDIR
    return None if os.access(path if path.exists() else path.parent, os.W_OK) else errno.EACCES


def _holds_runs(path: Path) -> bool:
    try:
        return find_out(lambda: open_file(path)).format is not None
    except (OSError, *BROKEN):  # whoever writes it says what is wrong with it
        return False


def _is_the_same(path: Path, other: Path) -> bool:
    try:
        return path.is_file() and path.samefile(other)
    except (OSError, ValueError):  # not there, or a pattern
        return False

"""The JSON values of a file: one a line, or the whole file as one document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

from turnwatch.sources.json_values import BrokenLine, read_values
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.wrong_shape import what_is_wrong


def read_records(stream: IO[bytes]) -> Iterator[tuple[int, Any] | BrokenLine]:
    """The values of a file with the lines where they start; broken lines are reported, not raised.

    Args:
        stream: JSON lines, of which one is held at a time, or one document, which is read whole.
    """
    for item in read_values(stream, split_lists=False):
        yield item if isinstance(item, BrokenLine) else (item.line, item.value)


def read_runs(
    stream: IO[bytes],
    claims: Callable[[object], bool],
    turns_of: Callable[[Any, int, int], Iterator[RecordedTurn]],
    *,
    of: str,
    part: str,
) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of a file with a run in each of its documents; a run that cannot be read is reported, not raised.

    Args:
        stream: The file.
        claims: Whether a document is such a run.
        turns_of: Reads a run, given the line where it starts and its number (1-based).
        of: Whose runs they are, for people.
        part: What a run consists of, for people.
    """
    for number, item in enumerate(read_records(stream), 1):
        if isinstance(item, BrokenLine):
            yield item
            continue
        line, record = item
        if not claims(record):
            yield BrokenLine(line, f"not a trajectory of {of}")
            continue
        try:
            yield from turns_of(record, line, number)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            yield BrokenLine(line, f"a {part} that cannot be read: {what_is_wrong(error)}")

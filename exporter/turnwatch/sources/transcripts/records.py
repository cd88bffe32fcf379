"""The JSON values of a file: one a line, or the whole file as one document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from turnwatch.sources.json_values import BrokenLine, read_values


def read_records(stream: IO[bytes]) -> Iterator[tuple[int, Any] | BrokenLine]:
    """The values of a file with the lines where they start; broken lines are reported, not raised.

    Args:
        stream: JSON lines, of which one is held at a time, or one document, which is read whole.
    """
    for item in read_values(stream, split_lists=False):
        yield item if isinstance(item, BrokenLine) else (item.line, item.value)

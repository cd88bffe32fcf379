"""The JSON values of a file: one a line, or the whole file as one document."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO, Any, Final

from turnwatch.sources.trajectories import BrokenLine, parse_line

# A document is read whole. No client writes larger ones; a file this large is something else.
_MAX_DOCUMENT_BYTES: Final = 1 << 30


def read_records(stream: IO[bytes]) -> Iterator[tuple[int, Any] | BrokenLine]:
    """The values of a file with the lines where they start; broken lines are reported, not raised.

    Args:
        stream: JSON lines, of which one is held at a time, or one document, which is read whole.
    """
    first = b""
    number = 0
    for line in stream:
        number += 1
        if line.strip():
            first = line
            break
    rest = chain([first], stream)
    if _opens_document(first):
        yield from _read_document(number, rest)
        return
    for at, line in enumerate(rest, number):
        if not line.strip():
            continue
        value = _parsed(line)
        if value is None:
            yield BrokenLine(at, "not JSON")
        else:
            yield at, value


def _opens_document(line: bytes) -> bool:
    """Whether a value goes on after its first line, as it does when it is written with indentation."""
    text = line.strip(b"\xef\xbb\xbf \t\r\n")
    return text[:1] in (b"{", b"[") and text[-1:] in (b"{", b"[", b",", b":") and _parsed(text) is None


def _read_document(number: int, lines: Iterator[bytes]) -> Iterator[tuple[int, Any] | BrokenLine]:
    parts: list[bytes] = []
    size = 0
    for line in lines:
        parts.append(line)
        size += len(line)
        if size > _MAX_DOCUMENT_BYTES:
            yield BrokenLine(number, "a JSON document too large to be read whole")
            return
    value = _parsed(b"".join(parts))
    if value is not None:
        yield number, value
        return
    # No document, then: lines, of which the first ones are broken.
    for at, line in enumerate(parts, number):
        value = _parsed(line)
        if value is not None:
            yield at, value
        elif line.strip():
            yield BrokenLine(at, "not JSON")


def _parsed(line: bytes) -> dict[str, Any] | list[Any] | None:
    if line.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return None
    try:
        value = parse_line(line)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None

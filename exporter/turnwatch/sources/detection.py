"""What a file holds, found out from its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import IO, Final

from turnwatch.sources.compressed import refuse_cut_off
from turnwatch.sources.json_values import TOO_LONG, BrokenLine, Value, read_values
from turnwatch.sources.spans import files
from turnwatch.sources.trajectories import looks_like_trajectory
from turnwatch.sources.transcripts.formats import FORMATS, TranscriptFormat, transcript_format

_HEAD_BYTES: Final = 4096
_PIECE: Final = 1 << 20
_NO_FORMAT: Final = "not a format that turnwatch reads (docs/scan.md has them)"


class Format(StrEnum):
    """What a file holds: found out from its content, or said."""

    AUTO = "auto"
    SPANS = "spans"
    TRAJECTORIES = "trajectories"
    TRANSCRIPTS = "transcripts"


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a file.

    Attributes:
        format: What it holds; None when it is nothing that can be read.
        spans: Which kind of file of spans, where that is known.
        transcript: Which kind of transcript, where it is one.
        why_not: Why it cannot be read.
    """

    format: Format | None
    spans: files.Format | None = None
    transcript: TranscriptFormat | None = None
    why_not: str = ""


def find_out(open_: Callable[[], IO[bytes]]) -> Found:
    """What a file holds. Reads as much of it as one record takes.

    Args:
        open_: Opens the file from its start.

    Raises:
        OSError: The file cannot be opened.
        EOFError, OSError, zlib.error, lzma.LZMAError: It is compressed, and cut off or damaged before its format shows.
    """
    with open_() as file:
        head = file.read(_HEAD_BYTES)
        if not head:
            refuse_cut_off(file)
    if not head:
        return Found(None, why_not="empty")
    begins = head.lstrip(b"\0\xef\xbb\xbf \t\r\n")[:1]
    why_not = _NO_FORMAT
    # Binary files may be large, and no line of them is worth looking at.
    if begins in (b"{", b"[") or b"\0" not in head:
        with open_() as file:
            for item in _first_values(file, is_lines=begins == b"{"):
                if not isinstance(item, BrokenLine):
                    found = _claimed(item.value)
                    if found is not None:
                        return found
                elif item.reason == TOO_LONG:
                    why_not = f"its JSON is {TOO_LONG}"
                elif begins in (b"{", b"[") and why_not == _NO_FORMAT:
                    why_not = f"{_NO_FORMAT}; line {item.line} is {item.reason}"
            if begins != b"[":
                refuse_cut_off(file)
    body = files.format_of_body(open_)
    if body is not None:
        return Found(Format.SPANS, spans=body)
    if begins == b"[":
        # A whole list may say what its first members do not.
        return as_transcript(open_, why_not)
    return Found(None, why_not=why_not)


def _first_values(file: IO[bytes], *, is_lines: bool) -> Iterator[Value | BrokenLine]:
    """What the file begins with. Of a file of lines, what stands behind lines that are too long for a value."""
    for _ in range(files.LOOKED_AT):
        values = islice(read_values(files.beginning_of(file)), files.LOOKED_AT)
        first = next(values, None)
        if first is None:
            return
        yield first
        if not (is_lines and isinstance(first, BrokenLine) and first.reason == TOO_LONG):
            yield from values
            return
        while (rest := file.readline(_PIECE)) and not rest.endswith(b"\n"):
            pass


def as_transcript(open_: Callable[[], IO[bytes]], why_not: str = "not a transcript that turnwatch reads") -> Found:
    """Which kind of transcript a file is.

    Raises:
        OSError, EOFError, zlib.error, lzma.LZMAError: As by ``find_out``.
    """
    with open_() as file:
        transcript = transcript_format(file)
        if transcript is None:
            refuse_cut_off(file)
    if transcript is None:
        return Found(None, why_not=why_not)
    return Found(Format.TRANSCRIPTS, transcript=transcript)


def _claimed(value: object) -> Found | None:
    spans = files.format_of_value(value)
    if spans is not None:
        return Found(Format.SPANS, spans=spans)
    if looks_like_trajectory(value):
        return Found(Format.TRAJECTORIES)
    for known in FORMATS:
        if known.claims(value):
            return Found(Format.TRANSCRIPTS, transcript=known)
    return None

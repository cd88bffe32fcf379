"""The JSON values of a stream, with the lines where they begin: one a line, written over several lines, or in a list.

Memory is bounded by the longest value that is read, whatever the size of the stream.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final, NamedTuple, cast

import orjson

MAX_VALUE_BYTES: Final = 1 << 26
"""The longest value that is read. A longer one is reported and passed over. One value takes several times its length
in memory while it is read."""

# What a document is read by: as much as the first value may take, and then more.
_SMALLEST_PIECE: Final = 1 << 13
_LARGEST_PIECE: Final = 1 << 20
_LONGEST_WORD: Final = 16  # of JSON, an escape being one
_AROUND: Final = b"\xef\xbb\xbf \t\r\n"
_BETWEEN: Final = re.compile(r"[\s,]*")
_BEGINS_LINE: Final = re.compile(r"^[{\[]", re.MULTILINE)
# Up to the next bracket, over whole texts. Possessive, so that it never goes back.
_TO_BRACKET: Final = re.compile(r'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)
_TO_QUOTE: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_DECODER: Final = json.JSONDecoder()

NOT_JSON: Final = "not JSON"
NO_OBJECT: Final = "neither an object nor a list"
TOO_LONG: Final = f"longer than {MAX_VALUE_BYTES >> 20} MB, passed over"
NOT_CLOSED: Final = "cut off: the JSON that begins here is not closed"


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """Something that could not be read.

    Attributes:
        line: The number of the line where it begins (1-based).
        reason: What is wrong with it, without its content.
    """

    line: int
    reason: str


class Value(NamedTuple):
    """An object or a list.

    Attributes:
        line: The number of the line where it begins (1-based).
        value: The parsed value.
        size: Its length in the stream, in bytes.
    """

    line: int
    value: Any
    size: int


def parse_json(text: str | bytes | bytearray) -> Any:
    """What a JSON text says.

    orjson is strict. The standard library also takes what real files hold: half of a surrogate pair where a
    result was cut off, a byte order mark, NaN.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return json.loads(text)
        except RecursionError as error:
            raise ValueError("nested too deep") from error


def read_values(source: IO[bytes] | Iterable[str | bytes], *, split_lists: bool = True) -> Iterator[Value | BrokenLine]:
    """The objects and lists of a stream. What cannot be read is reported, and the rest is read.

    Args:
        source: A stream, or its lines.
        split_lists: Give the objects of a list that is written over several lines, or is too long for one value, one
            by one. Otherwise such a list is one value.
    """
    lines = _Lines(source)
    while line := lines.next(lists_in_pieces=split_lists):
        try:
            value = orjson.loads(line)
        except ValueError:
            yield from _other(lines, line, split_lists)
            continue
        if isinstance(value, (dict, list)):
            yield Value(lines.number, value, len(line))
        else:
            yield BrokenLine(lines.number, NO_OBJECT)
        # Its memory is used again for the next value, which is read half as fast beside it.
        del value


def _other(lines: _Lines, line: bytes, split_lists: bool) -> Iterator[Value | BrokenLine]:
    """What a line is that is no value as it stands."""
    text = line.strip(_AROUND).lstrip(b", \t")
    if not text:
        return
    number = lines.number
    is_whole = lines.is_whole
    begins = text[:1] in (b"{", b"[")
    if is_whole and begins:
        value = _parsed(text)
        if value is not None:
            yield Value(number, value, len(line))
            return
    goes_on = text[-1:] in (b"{", b"[", b",", b":") if is_whole else split_lists and text[:1] == b"["
    if begins and goes_on:
        yield from _Document(lines, line, is_list=split_lists and text[:1] == b"[").values()
    elif is_whole:
        yield BrokenLine(number, NOT_JSON)
    else:
        lines.skip(line)
        yield BrokenLine(number, TOO_LONG)


def _parsed(text: bytes | bytearray) -> dict[str, Any] | list[Any] | None:
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


class _Lines:
    """A stream by lines, and by pieces where lines say nothing.

    Attributes:
        number: The number of the line that was given last (1-based).
        is_whole: Whether all of it was given.
        ended: How many lines came to their end so far.
    """

    def __init__(self, source: IO[bytes] | Iterable[str | bytes]) -> None:
        self.number = 0
        self.is_whole = True
        self.ended = 0
        self._read_line, self._read = _readers_of(source)
        self._again = b""  # given back, and from where it is not read again yet
        self._at = 0

    def next(self, *, lists_in_pieces: bool) -> bytes:
        """The next line, or the beginning of one that is too long for a value; empty at the end.

        Args:
            lists_in_pieces: Of a list on a long line, too, no more than its beginning.
        """
        end = self._again.find(b"\n", self._at) + 1
        line = self._again[self._at : end or len(self._again)]
        self._at += len(line)
        self.is_whole = True
        if not end:
            line += self._read_line(min(_LARGEST_PIECE, MAX_VALUE_BYTES + 1))
            if not line.endswith(b"\n") and len(line) >= min(_LARGEST_PIECE, MAX_VALUE_BYTES + 1):
                self.is_whole = not (lists_in_pieces and line.lstrip(_AROUND)[:1] == b"[")
                if self.is_whole:
                    line += self._read_line(max(0, MAX_VALUE_BYTES + 1 - len(line)))
                    self.is_whole = len(line) <= MAX_VALUE_BYTES
        self.number = self.ended + 1
        self.ended += line.endswith(b"\n")
        return line

    def piece(self, size: int) -> bytes:
        """What comes next, at most about so many bytes; empty at the end only."""
        piece = self._again[self._at : self._at + size]
        self._at += len(piece)
        piece = piece or self._read(size)
        self.ended += piece.count(b"\n")
        return piece

    def give_back(self, rest: bytes) -> None:
        """Take back what was read too far."""
        self.ended -= rest.count(b"\n")
        self._again = rest + self._again[self._at :]
        self._at = 0

    def skip(self, line: bytes) -> None:
        """Pass over the rest of a line."""
        while line and not line.endswith(b"\n"):
            line = self._read_line(_LARGEST_PIECE)
            self.ended += line.endswith(b"\n")


_Read = Callable[[int], bytes]


def _readers_of(source: IO[bytes] | Iterable[str | bytes]) -> tuple[_Read, _Read]:
    if isinstance(source, io.IOBase) and not isinstance(source, io.TextIOBase):
        stream = cast("IO[bytes]", source)
        return stream.readline, stream.read
    lines = iter(source)

    def next_line(_: int) -> bytes:
        line = next(lines, None)
        if line is None:
            return b""
        text = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        return text if text.endswith(b"\n") else text + b"\n"

    return next_line, next_line


class _Document:
    """A value that begins with a line and goes on behind it.

    The standard library's parser says where a value ends, which is faster than to look for it. What it cannot read is
    passed over by its brackets.

    Args:
        lines: What follows.
        first: The line.
        is_list: Give the objects of the list that it is, one by one.
    """

    def __init__(self, lines: _Lines, first: bytes, *, is_list: bool) -> None:
        self._lines = lines
        self._is_list = is_list
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = self._decoder.decode(first).removeprefix("\ufeff")
        self._position = 0
        self._line = self._first = lines.number  # the former is that of the position
        self._piece = _SMALLEST_PIECE

    def values(self) -> Iterator[Value | BrokenLine]:
        """What is in it. What is read next is what stands behind it."""
        if self._is_list:
            self._go_to(self._text.index("[") + 1)
        while self._find_next():
            start, text = self._position, self._text
            if self._is_list and text[start] == "]":
                self._go_to(start + 1)
                break
            began = self._line
            try:
                value, end = _DECODER.raw_decode(text, start)
            except (ValueError, RecursionError) as error:
                if self._is_incomplete(error) and self._more():
                    continue
                yield BrokenLine(began, self._what_is_wrong(error))
                if not self._pass_over(error):
                    break
            else:
                self._go_to(end)
                if isinstance(value, (dict, list)):
                    yield Value(began, value, end - start)
            if not self._is_list:
                break
        else:
            if self._is_list:
                yield BrokenLine(self._first, NOT_CLOSED)
        self._lines.give_back(self._text[self._position :].encode() + self._decoder.getstate()[0])

    def _go_to(self, position: int) -> None:
        self._line += self._text.count("\n", self._position, position)
        self._position = position

    def _find_next(self) -> bool:
        """Go to what is neither white space nor a comma; False at the end of the stream."""
        while True:
            found = _BETWEEN.match(self._text, self._position)
            self._go_to(found.end() if found else self._position)
            if self._position < len(self._text):
                return True
            if not self._more():
                return False

    def _more(self) -> bool:
        """Read more, the more the longer the value is; False at the end of the stream, or when it is too long."""
        self._text = self._text[self._position :]
        self._position = 0
        if len(self._text) > MAX_VALUE_BYTES:
            return False
        piece = self._lines.piece(min(max(len(self._text), self._piece), MAX_VALUE_BYTES))
        self._piece = min(2 * self._piece, _LARGEST_PIECE)
        self._text += self._decoder.decode(piece)
        return bool(piece)

    def _is_incomplete(self, error: Exception) -> bool:
        """Whether a value cannot be read because what was read of it so far is not all of it."""
        return isinstance(error, json.JSONDecodeError) and (
            error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_WORD
        )

    def _what_is_wrong(self, error: Exception) -> str:
        if not self._is_incomplete(error):
            return NOT_JSON
        return TOO_LONG if len(self._text) > MAX_VALUE_BYTES else NOT_CLOSED

    def _pass_over(self, error: Exception) -> bool:
        """Go behind what cannot be read; False when that is the end of the document, too."""
        # Something that begins where a line does, before there was an error: the value was cut off there.
        before = error.pos + 1 if isinstance(error, json.JSONDecodeError) else len(self._text)
        cut_off = _BEGINS_LINE.search(self._text, self._position + 1, before)
        if cut_off is not None and len(self._text) <= MAX_VALUE_BYTES:
            self._go_to(cut_off.start())
            return False
        depth, in_string = 0, False
        while True:
            found = (_TO_QUOTE if in_string else _TO_BRACKET).match(self._text, self._position)
            self._go_to(found.end() if found else self._position)
            mark = self._text[self._position : self._position + 1]
            if mark in ("", "\\"):  # or it is the first half of an escape
                self._text = self._text[self._position :]
                self._position = 0
                piece = self._lines.piece(_LARGEST_PIECE)
                if not piece:
                    return False
                self._text += self._decoder.decode(piece)
                continue
            self._position += 1
            if mark == '"':  # of a text that goes on behind what was read
                in_string = not in_string
                continue
            depth += 1 if mark in ("{", "[") else -1
            if depth <= 0:
                return True

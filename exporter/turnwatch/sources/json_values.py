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

from turnwatch.sources.compressed import fault_of
from turnwatch.sources.cut_off_json import TO_BRACKET, OpenBracket, open_brackets, whole_records

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
_TO_QUOTE: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BEGINNING_OF_WORD: Final = re.compile(
    r"\s*(?:-?(?:I(?:n(?:f(?:i(?:n(?:it?)?)?)?)?)?)?|Na?|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|\.|[eE][-+]?)?\s*"
)
_DECODER: Final = json.JSONDecoder()

# What reasons begin with.
NOT_JSON: Final = "not JSON"
CUT_OFF: Final = "cut off"
NO_OBJECT: Final = "neither an object nor a list, as a line or a document must be"
TOO_LONG: Final = f"longer than {MAX_VALUE_BYTES >> 20} MB, passed over"

_NO_BEGINNING: Final = f"{NOT_JSON}: a line or a document must be an object or a list"
_NOT_CLOSED: Final = "the JSON that begins here is not closed"
_BEFORE_CUT: Final = "; what is whole before that was read"


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
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("unexpected end of data"):  # nothing else would take it for whole
            raise
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
    if fault := fault_of(source):
        yield BrokenLine(lines.number, str(fault) or type(fault).__name__)


def _other(lines: _Lines, line: bytes, split_lists: bool) -> Iterator[Value | BrokenLine]:
    """What a line is that is no value as it stands."""
    text = line.strip(_AROUND).lstrip(b", \t")
    if not text:
        return
    number = lines.number
    is_whole = lines.is_whole
    begins = text[:1] in (b"{", b"[")
    wrong: ValueError | None = None
    if is_whole and begins:
        try:
            value = parse_json(text)
        except ValueError as error:
            wrong = error
        else:
            yield Value(number, value, len(line))
            return
    goes_on = text[-1:] in (b"{", b"[", b",", b":") if is_whole else split_lists and text[:1] == b"["
    if begins and goes_on:
        yield from _Document(lines, line, is_list=split_lists and text[:1] == b"[").values()
    elif is_whole:
        yield from _broken(number, line, line.find(text), wrong)
    else:
        lines.skip(line)
        yield BrokenLine(number, TOO_LONG)


def _broken(number: int, line: bytes, start: int, wrong: ValueError | None) -> Iterator[Value | BrokenLine]:
    """What is to be said of a line that is not JSON from where it starts on, and what of it can be read."""
    text = line.decode("utf-8", "replace").rstrip()
    if wrong is None:
        yield BrokenLine(number, _NO_BEGINNING)
    elif not isinstance(wrong, json.JSONDecodeError):
        no_text = f" at byte {start + wrong.start + 1}: no UTF-8" if isinstance(wrong, UnicodeDecodeError) else ""
        yield BrokenLine(number, NOT_JSON + (no_text or f": {wrong}"))
    elif not (levels := _open_where_cut_off(wrong, text[start:], 0)):
        yield BrokenLine(number, f"{NOT_JSON} at column {start + wrong.pos + 1}: {wrong.msg}")
    else:
        value = whole_records(text[start:], 0, levels)
        if value is not None:
            yield Value(number, value, len(line))
        behind = "" if value is None else _BEFORE_CUT
        yield BrokenLine(number, f"{CUT_OFF} at column {len(text)}: {_NOT_CLOSED}{behind}")


def _may_go_on(error: Exception, text: str) -> bool:
    """Whether a text may be no JSON only because it is not all of it."""
    return isinstance(error, json.JSONDecodeError) and (
        error.msg.startswith("Unterminated string") or error.pos >= len(text) - _LONGEST_WORD
    )


def _open_where_cut_off(error: Exception, text: str, start: int) -> list[OpenBracket]:
    """The open brackets of a value that is no JSON because the text ends before it; none where that is not why."""
    if not isinstance(error, json.JSONDecodeError) or not _may_go_on(error, text):
        return []
    is_in_text = error.msg.startswith(("Unterminated string", "Invalid \\u"))
    if not is_in_text and _BEGINNING_OF_WORD.fullmatch(text, error.pos) is None:
        return []
    return open_brackets(text, start)


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
                if _may_go_on(error, self._text) and self._more():
                    continue
                cut, levels = self._cut_at(error)
                if not levels:
                    yield BrokenLine(began, self._what_is_wrong(error))
                    if not self._pass_over():
                        break
                    continue
                records = whole_records(self._text[:cut], self._position, levels)
                if records is not None:
                    yield Value(began, records, cut - self._position)
                self._go_to(cut)
                behind = "" if records is None else _BEFORE_CUT
                yield BrokenLine(began, f"{CUT_OFF}{self._in_line(began)}: {_NOT_CLOSED}{behind}")
                break
            else:
                self._go_to(end)
                if isinstance(value, (dict, list)):
                    yield Value(began, value, end - start)
            if not self._is_list:
                break
        else:
            if self._is_list:
                where = self._in_line(self._first)
                yield BrokenLine(self._first, f"{CUT_OFF}{where}: {_NOT_CLOSED}{_BEFORE_CUT}")
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
        if self._is_too_long():
            return False
        size = max(len(self._text) - self._position, self._piece)
        piece = self._lines.piece(min(size, MAX_VALUE_BYTES))
        if piece:
            self._piece = min(2 * self._piece, _LARGEST_PIECE)
            self._text = self._text[self._position :] + self._decoder.decode(piece)
            self._position = 0
        return bool(piece)

    def _is_too_long(self) -> bool:
        return len(self._text) - self._position > MAX_VALUE_BYTES

    def _cut_at(self, error: Exception) -> tuple[int, list[OpenBracket]]:
        """Where what cannot be read was cut off, and what was open there: nothing when something else is wrong."""
        if self._is_too_long():
            return 0, []
        # Something that begins where a line does, before there was an error: it was cut off there.
        before = error.pos + 1 if isinstance(error, json.JSONDecodeError) else len(self._text)
        begins_again = _BEGINS_LINE.search(self._text, self._position + 1, before)
        if begins_again is not None:
            cut = begins_again.start()
            return cut, open_brackets(self._text[:cut], self._position)
        return len(self._text), _open_where_cut_off(error, self._text, self._position)

    def _what_is_wrong(self, error: Exception) -> str:
        if not isinstance(error, json.JSONDecodeError):
            return f"{NOT_JSON}: nested too deep"
        if self._is_too_long() and _may_go_on(error, self._text):
            return TOO_LONG
        line = self._line + self._text.count("\n", self._position, error.pos)
        return f"{NOT_JSON}{'' if line == self._line else f' in line {line}'}: {error.msg}"

    def _in_line(self, began: int) -> str:
        """Which line the position is in, or behind whose end, unless it is this one."""
        line = self._line - self._text.endswith("\n", 0, self._position)
        return "" if line <= began else f" in line {line}"

    def _pass_over(self) -> bool:
        """Go behind what cannot be read; False when that is the end of the document, too."""
        depth, in_string = 0, False
        while True:
            found = (_TO_QUOTE if in_string else TO_BRACKET).match(self._text, self._position)
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

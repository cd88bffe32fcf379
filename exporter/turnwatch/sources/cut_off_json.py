"""What is whole of a JSON value that was cut off: the records in front of the cut."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

# Up to the next bracket, over whole texts. Possessive, so that it never goes back.
TO_BRACKET: Final = re.compile(r'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)

_KEY: Final = re.compile(r'"(\w{1,40})"\s{0,9}:\s{0,9}\Z')
_LONGEST_KEY: Final = 64
_CLOSING: Final = {"{": "}", "[": "]"}

# Lists whose members are records, each of use without the next.
_RECORDS: Final = frozenset({"calls", "messages", "trajectory", "spans", "logRecords", "data", "observations", "runs"})
# What only leads to such a list. Any other list or object is part of a record, and half a record would be judged as if
# it were all of it.
_AROUND: Final = frozenset(
    {"resourceSpans", "scopeSpans", "resourceLogs", "scopeLogs", "request", "request_body", "body"}
)


class _Open:
    """A bracket that is not closed."""

    __slots__ = ("behind_whole", "bracket", "name")

    def __init__(self, bracket: str, position: int, name: str | None) -> None:
        self.bracket = bracket
        self.name = name  # the key that it is the value of; None of a list's member
        # Behind the whole members of a list, and the last list of an object that holds records or leads to some.
        self.behind_whole = position + 1 if bracket == "[" else None

    @property
    def is_known(self) -> bool:
        return self.name is None or self.name in _RECORDS or self.name in _AROUND


def is_open(text: str, start: int = 0) -> bool:
    """Whether brackets of the value that begins here are open where the text ends."""
    return bool(_open_brackets(text, start))


def whole_records(text: str, start: int = 0) -> Any | None:
    """The value that was cut off, without the record in which that happened and what would have followed.

    Args:
        text: The value, up to the cut.
        start: Where it begins.

    Returns:
        None where the value is not cut off, or is a record itself.
    """
    levels = _open_brackets(text, start)
    deepest = end = 0
    for depth, level in enumerate(levels, 1):
        if not level.is_known:
            break
        if level.behind_whole is not None:
            deepest, end = depth, level.behind_whole
        if level.name in _RECORDS:
            break
    if not deepest:
        return None
    closing = "".join(_CLOSING[level.bracket] for level in reversed(levels[:deepest]))
    try:
        return orjson.loads(text[start:end] + closing)
    except ValueError:
        return None


def _open_brackets(text: str, start: int) -> list[_Open]:
    """The brackets that are open where the text ends, from the outside in; none where they do not match."""
    levels: list[_Open] = []
    position = start
    while True:
        found = TO_BRACKET.match(text, position)
        before, position = position, found.end() if found else position
        mark = text[position : position + 1]
        if mark in _CLOSING:
            in_object = bool(levels) and levels[-1].bracket == "{"
            levels.append(_Open(mark, position, _key(text, before, position) if in_object else None))
        elif not levels or mark != _CLOSING[levels[-1].bracket]:
            # The end, or the beginning of a text that does not end; anything else is broken, and not only cut off.
            return levels if mark in ("", '"') else []
        else:
            closed = levels.pop()
            if levels and (levels[-1].bracket == "[" or (closed.bracket == "[" and closed.is_known)):
                levels[-1].behind_whole = position + 1
        position += 1


def _key(text: str, start: int, end: int) -> str:
    """The key in front of a value; "" where it is none of those that are known here."""
    found = _KEY.search(text, max(start, end - _LONGEST_KEY), end)
    return found[1] if found else ""

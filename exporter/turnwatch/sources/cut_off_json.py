"""What is whole of a JSON value that was cut off: the records in front of the cut."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

# Up to the next bracket, over whole texts. Possessive, so that it never goes back.
TO_BRACKET: Final = re.compile(r'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)

_NEXT_BRACKET: Final = re.compile(f"{TO_BRACKET.pattern}([{{}}\\[\\]])", re.DOTALL)
_KEY: Final = re.compile(r'(?<!\\)"(\w{1,40})"\s{0,9}:\s{0,9}\Z')
_LONGEST_KEY: Final = 64
_CLOSING: Final = {"{": "}", "[": "]"}

# Lists whose members are records, each of use without the next.
_RECORDS: Final = frozenset({"calls", "messages", "trajectory", "spans", "logRecords", "data", "observations", "runs"})
# What only leads to such a list. Any other list or object is part of a record, and half a record would be judged as if
# it were all of it.
_AROUND: Final = frozenset(
    {"resourceSpans", "scopeSpans", "resourceLogs", "scopeLogs", "request", "request_body", "body"}
)


class OpenBracket:
    """A bracket that is not closed where a text ends.

    Attributes:
        bracket, position: Which, and where in the text.
        behind_member: Where the last member that is whole ends; of a list.
        lists: Beginning and end of the lists that are values in it; of an object.
    """

    __slots__ = ("behind_member", "bracket", "lists", "position")

    def __init__(self, bracket: str, position: int) -> None:
        self.bracket = bracket
        self.position = position
        self.behind_member = position + 1
        self.lists: list[tuple[int, int]] = []

    def behind_whole(self, text: str) -> int | None:
        """Where what is of use without the rest ends; None where there is nothing yet."""
        if self.bracket == "[":
            return self.behind_member
        known = _RECORDS | _AROUND
        return next((end for start, end in reversed(self.lists) if _key(text, start) in known), None)


def open_brackets(text: str, start: int = 0) -> list[OpenBracket]:
    """The brackets of the value that begins here which are open where the text ends, from the outside in.

    None of them where the value is whole, or its brackets do not match.
    """
    levels: list[OpenBracket] = []
    position = start
    while found := _NEXT_BRACKET.match(text, position):
        bracket, position = found[1], found.end()
        if bracket in _CLOSING:
            levels.append(OpenBracket(bracket, position - 1))
            continue
        if not levels or _CLOSING[levels[-1].bracket] != bracket:
            return []
        closed = levels.pop()
        if not levels:
            return []
        if levels[-1].bracket == "[":
            levels[-1].behind_member = position
        elif bracket == "]":
            levels[-1].lists.append((closed.position, position))
    return levels


def whole_records(text: str, start: int, levels: list[OpenBracket]) -> Any | None:
    """The value that was cut off, without the record in which that happened and what would have followed.

    Args:
        text: The value, up to the cut.
        start: Where it begins.
        levels: Its open brackets.

    Returns:
        None where the value is not cut off, or is a record itself.
    """
    deepest = end = 0
    for depth, level in enumerate(levels, 1):
        name = _key(text, level.position) if depth > 1 and levels[depth - 2].bracket == "{" else None
        if name is not None and name not in _RECORDS | _AROUND:
            break
        behind_whole = level.behind_whole(text)
        if behind_whole is not None:
            deepest, end = depth, behind_whole
        if name in _RECORDS:
            break
    if not deepest:
        return None
    closing = "".join(_CLOSING[level.bracket] for level in reversed(levels[:deepest]))
    try:
        return orjson.loads(text[start:end] + closing)
    except ValueError:
        return None


def _key(text: str, position: int) -> str:
    """The key in front of a value; "" where it is none of those that are known here."""
    found = _KEY.search(text, max(0, position - _LONGEST_KEY), position)
    return found[1] if found else ""

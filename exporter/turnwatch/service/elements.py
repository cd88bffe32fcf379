"""How many messages a body holds, told before it is decoded.

A few bytes on the wire become a whole object once decoded: a body of empty spans grows ninetyfold, so that the
permitted size alone would not bound memory. A cheap upper bound comes first (every element has at least one of a few
bytes in it, and they are rare in text); only where it does not settle the matter are the elements counted.
"""

from __future__ import annotations

import re
from typing import Final

from turnwatch.service.refusal import MALFORMED, TOO_LARGE, Refusal
from turnwatch.service.signals import Form, Signal

# Per message: field number -> message it holds. Only what can repeat, and what leads there.
_Fields = dict[int, str]
_MESSAGES: Final[dict[str, _Fields]] = {
    "traces": {1: "resource_spans"},
    "resource_spans": {1: "resource", 2: "scope_spans"},
    "scope_spans": {1: "scope", 2: "span"},
    "span": {9: "pair", 11: "event", 13: "link"},
    "event": {3: "pair"},
    "link": {4: "pair"},
    "logs": {1: "resource_logs"},
    "resource_logs": {1: "resource", 2: "scope_logs"},
    "scope_logs": {1: "scope", 2: "record"},
    "record": {5: "value", 6: "pair"},
    "resource": {1: "pair", 3: "entity"},
    "entity": {3: "text", 4: "text"},
    "scope": {3: "pair"},
    "pair": {2: "value"},
    "value": {5: "list", 6: "pairs"},
    "list": {1: "value"},
    "pairs": {1: "pair"},
    "text": {},
}
_TAGS: Final = bytes({number << 3 | 2 for fields in _MESSAGES.values() for number in fields})
# A tag may be written with more bytes than it needs; then its first byte has the high bit.
_NOT_TAGS: Final = bytes(set(range(256)) - set(_TAGS) - {tag | 0x80 for tag in _TAGS})
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(b"{[,"))
_JSON_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# Decoded JSON takes about 120 bytes for each brace, bracket and comma; decoded protobuf up to 190 for a message.
_STRUCTURE_PER_ELEMENT: Final = 2


def check_elements(body: bytes, signal: Signal, form: Form, limit: int) -> None:
    """Refuse a body that would decode to too many objects.

    Raises:
        Refusal: too large; or malformed, where a protobuf body ends in the middle of a message.
    """
    if form == "json":
        limit *= _STRUCTURE_PER_ELEMENT
        if len(body) <= limit or len(body.translate(None, _NOT_STRUCTURE)) <= limit:
            return
        if len(_JSON_STRING.sub(b"", body).translate(None, _NOT_STRUCTURE)) <= limit:
            return
    elif len(body) <= limit or len(body.translate(None, _NOT_TAGS)) <= limit or _counted(body, signal, limit):
        return
    raise Refusal(TOO_LARGE, "the request holds too many spans, records or attributes")


def _counted(body: bytes, signal: Signal, limit: int) -> bool:
    """Whether the body's messages are no more than ``limit``. Stops counting there."""
    left = limit
    open_messages: list[tuple[int, int, str]] = [(0, len(body), signal)]
    while open_messages:
        at, end, name = open_messages.pop()
        fields = _MESSAGES[name]
        while at < end:
            tag, at = _varint(body, at, end)
            wire = tag & 7
            if wire == 2:
                size, at = _varint(body, at, end)
                inner = fields.get(tag >> 3)
                if inner is not None:
                    left -= 1
                    if left < 0:
                        return False
                    if size > 1:
                        open_messages.append((at, min(at + size, end), inner))
                at += size
            elif wire == 0:
                _, at = _varint(body, at, end)
            elif wire == 1:
                at += 8
            elif wire == 5:
                at += 4
            else:
                raise Refusal(MALFORMED, "the body is no valid protobuf")
        if at > end:
            raise Refusal(MALFORMED, "the body is no valid protobuf")
    return True


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Refusal(MALFORMED, "the body is no valid protobuf")

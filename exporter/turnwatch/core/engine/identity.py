"""Which calls are the same call to the engine: looser than the public input hash."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from turnwatch.core.canonical import canonical_bytes, hides_content
from turnwatch.core.events import MISSING, ToolCall
from turnwatch.default_volatile_keys import DEFAULT_VOLATILE_KEYS

_HAS_EMPTY: Final = re.compile(rb'":(?:null|""|\[\]|\{\})')
_EMPTY_MEMBER: Final = re.compile(rb'(?<=[{,])"(?:[^"\\]|\\.)*":(?:null|""|\[\]|\{\})(?:,|(?=\}))')
_WHITE_SPACE: Final = b" \t\r\n"
_LOWER: Final = bytes(range(256)).lower()


def default_volatile_keys(_: str) -> frozenset[str]:
    """The argument names that count for no tool, where no settings say otherwise."""
    return DEFAULT_VOLATILE_KEYS


def identity(call: ToolCall, changes: bool | None, volatile_keys: Callable[[str], Iterable[str]]) -> int | None:
    """A number that is the same for the same call; None when the arguments are missing or do not show what they hold.

    Looks through null and empty defaults; for calls that do not change state through white space and letter
    case as well (in code that is written, indentation matters). Never through numbers: that turned no false
    alarm into one on every second run of one source.

    Only good within this process, where it never leaves the engine.
    """
    if call.identity is not None:  # the engine of the turn has asked before that of the conversation
        return call.identity
    args = call.args
    if args is MISSING:
        return None if call.input_hash is None else hash((call.tool, call.input_hash))
    raw = canonical_bytes(args, volatile_keys(call.tool)) if call.canonical is None else call.canonical
    if hides_content(raw):
        return None if call.input_hash is None else hash((call.tool, call.input_hash))
    if _HAS_EMPTY.search(raw):  # a search that begins with plain text is ten times as fast as the one that looks behind
        raw = _EMPTY_MEMBER.sub(b"", raw).replace(b",}", b"}")
    if changes is not True:
        raw = raw.translate(_LOWER, _WHITE_SPACE)
        if b"\\" in raw:
            raw = raw.replace(b"\\n", b"").replace(b"\\t", b"").replace(b"\\r", b"")
    call.identity = hash((call.tool, raw))
    return call.identity

"""Which calls are the same call to the engine: looser than the public input hash."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from turnwatch.core.canonical import canonical_bytes, hides_content
from turnwatch.core.effects import hands_over
from turnwatch.core.events import MISSING, ToolCall
from turnwatch.default_volatile_keys import DEFAULT_VOLATILE_KEYS

_HAS_EMPTY: Final = re.compile(rb'":(?:null|""|\[\]|\{\})')
_EMPTY_MEMBER: Final = re.compile(rb'(?<=[{,])"(?:[^"\\]|\\.)*":(?:null|""|\[\]|\{\})(?:,|(?=\}))')
# What people are told of a call says nothing of what it does. A description may, unless a command is beside it.
_REASONS: Final = b"explanation|justification|reason|purpose"
_REASON: Final = re.compile(rb'"(?:%b)":"(?:[^"\\]|\\.)*"(?:,|(?=\}))' % _REASONS)
_COMMENT: Final = re.compile(rb'"(?:%b|description)":"(?:[^"\\]|\\.)*"(?:,|(?=\}))' % _REASONS)
_COMMANDS: Final = re.compile(rb'"(?:command|cmd|code|script|sql)":["\[]')
_WHITE_SPACE: Final = b" \t\r\n"
_LOWER: Final = bytes(range(256)).lower()


def default_volatile_keys(_: str) -> frozenset[str]:
    """The argument names that count for no tool, where no settings say otherwise."""
    return DEFAULT_VOLATILE_KEYS


def identity(call: ToolCall, changes: bool | None, volatile_keys: Callable[[str], Iterable[str]]) -> int | None:
    """A number that is the same for the same call; None when the arguments are missing or do not show what they hold.

    Looks through null and empty defaults, and through what explains a command or a reading call to people; for calls
    that do not change state through white space and letter case as well (in code that is written, indentation
    matters). Never through numbers: that turned no false alarm into one on every second run of one source.

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
    if b'ion":"' in raw or b'reason":"' in raw or b'purpose":"' in raw:
        raw = _without_comments(raw, call.tool, changes)
    if changes is not True:
        raw = raw.translate(_LOWER, _WHITE_SPACE)
        if b"\\" in raw:
            raw = raw.replace(b"\\n", b"").replace(b"\\t", b"").replace(b"\\r", b"")
    call.identity = hash((call.tool, raw))
    return call.identity


def _without_comments(raw: bytes, tool: str, changes: bool | None) -> bytes:
    """Arguments without what explains a command or a reading call to people, unless nothing else is left."""
    if _COMMANDS.search(raw):
        return _COMMENT.sub(b"", raw).replace(b",}", b"}")
    if hands_over(tool):  # why is no other place to go to
        return _REASON.sub(b"", raw).replace(b",}", b"}")
    bare = _REASON.sub(b"", raw).replace(b",}", b"}") if changes is False else raw
    return raw if bare == b"{}" else bare

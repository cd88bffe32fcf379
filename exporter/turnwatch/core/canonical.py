r"""What are the same arguments.

The canonical form is JSON with sorted keys, no white space and NFC text. Numbers are written by value, so 1 and
1.0 are one; what JSON cannot say stands as ``{"\u0000": [kind, content]}``, which no plain argument can be
taken for, because a key that begins with NUL is always written in quotes after another NUL.

Two ways lead to it. Plain arguments, nearly all there are, are looked over container by container and dumped by
orjson in one go. Anything else is written piece by piece without recursion. Both give the same bytes.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from types import NoneType
from typing import Any, Final

import orjson

from turnwatch.core.canonical_writer import MAX_NODES, write_canonical
from turnwatch.core.events import MISSING
from turnwatch.core.standin import int_of_digits, type_tag
from turnwatch.core.volatile_keys import DEFAULT_RULES, KeyRules, rules_for
from turnwatch.default_volatile_keys import DEFAULT_VOLATILE_KEYS

# orjson 3.13 refuses dicts and lists deeper than 254 but not tuples, and dies of them: it is never asked.
MAX_ORJSON_DEPTH: Final = 60

_SCALARS: Final = frozenset({str, int, bool, NoneType})
_TREES: Final = frozenset({dict, list, tuple})
# A whole float as orjson writes it ends so. Beyond this size it may be written with an exponent.
_WHOLE: Final = re.compile(rb"\.0(?=[,\]}])")
_MAX_WHOLE: Final = 1e15
_JSON_TEXT: Final = re.compile(r"[ \t\r\n]*[\[{]")


def canonical_bytes(args: object, volatile_keys: Iterable[str] = DEFAULT_VOLATILE_KEYS) -> bytes:
    """The canonical form of a tool call's arguments.

    Args:
        args: Any object. A str that is the JSON text of an object or array is what it says.
            MISSING gives no bytes at all, which no argument does.
        volatile_keys: Keys left out at any depth, in any case, ``-`` and ``_`` alike.

    Never raises an Exception. Equal arguments give equal bytes in every process and on every platform.
    """
    if args is MISSING:
        return b""
    rules = DEFAULT_RULES if volatile_keys is DEFAULT_VOLATILE_KEYS else rules_for(volatile_keys)
    cls = type(args)
    try:
        if cls in _TREES:
            # In here and not in a function of its own: a call takes a tenth of what a short one costs in all.
            whole = _whole_floats(args, rules)
            if whole >= 0:
                dumped = orjson.dumps(args, None, orjson.OPT_SORT_KEYS)
                if whole:
                    dumped = _as_ints(dumped, whole)
                if dumped and (dumped.isascii() or _is_nfc(dumped)):
                    return dumped
        elif issubclass(cls, str):
            text = str.__str__(args)
            if _JSON_TEXT.match(text):
                return _of_json_text(text, rules)
    except Exception:
        pass  # ints beyond 64 bits, lone surrogates, keys that cannot be hashed
    try:
        return write_canonical(args, rules)
    except Exception:
        tag = type_tag(cls)
        return orjson.dumps({"\0": [tag.kind, tag.content]})


_TYPE_ALONE: Final = b'{"\\u0000":["type",'
_NAME_OR_TYPE: Final = re.compile(rb'\{"\\u0000":\["type",[^\]]*\]\}|"(?:[^"\\]|\\.)*":')
_SHOWN: Final = re.compile(rb"[^\[\]{},]")


def hides_content(canonical: bytes) -> bool:
    """Whether arguments hold nothing but objects that show nothing of themselves: equal forms need not be equal then.

    Such are objects of a class without fields and a repr of its own, generators, open connections. Where other
    arguments say what is asked for, a client or session beside them does not matter.

    Args:
        canonical: What ``canonical_bytes`` gave for the arguments.
    """
    return _TYPE_ALONE in canonical and not _SHOWN.search(_NAME_OR_TYPE.sub(b"", canonical))


def hidden_type(canonical: bytes) -> str:
    """The name of the first type that hides what an object of it holds."""
    return canonical.partition(_TYPE_ALONE)[2].partition(b'"]')[0].strip(b'"').decode(errors="replace")


def _is_nfc(dumped: bytes) -> bool:
    """Whether each text in it is NFC: no character composes with the quotation mark before it."""
    return unicodedata.is_normalized("NFC", dumped.decode())


def _as_ints(dumped: bytes, whole: int) -> bytes:
    """The same with so many whole floats written as ints; nothing where a text looks like one of them."""
    written, found = _WHOLE.subn(b"", dumped)
    return written if found == whole else b""


def _whole_floats(root: Any, rules: KeyRules) -> int:
    """How many whole floats there are in ``root``, which orjson otherwise writes in canonical form; -1 if it does not.

    The loop is as bare as it can be: together with issuperset() it costs about as much as orjson itself on
    arguments of many small values, and next to nothing on long texts.
    """
    known, scalars, trees = rules.known, _SCALARS, _TREES
    node = root
    nested: list[Any] | None = None  # made when there is something to put in: most arguments are flat
    position = level_end = depth = 0
    left = MAX_NODES
    whole = 0
    while True:
        values = node
        if type(node) is dict:
            if not known.issuperset(node) and not rules.are_plain(node):
                return -1
            values = node.values()
        for value in () if scalars.issuperset(map(type, values)) else values:
            cls = type(value)
            if cls in scalars:
                continue
            if cls in trees:
                left -= len(value) + 1
                if left < 0:
                    return -1
                if nested is None:
                    nested = []
                nested.append(value)
            # orjson makes null of NaN and the infinities.
            elif cls is not float or value - value != 0.0:
                return -1
            elif value.is_integer():
                if not -_MAX_WHOLE < value < _MAX_WHOLE or (not value and math.copysign(1.0, value) < 0.0):
                    return -1
                whole += 1
        if nested is None or position == len(nested):
            return whole
        if position == level_end:
            level_end = len(nested)
            depth += 1
            if depth > MAX_ORJSON_DEPTH:
                return -1
        node = nested[position]
        position += 1


def _of_json_text(text: str, rules: KeyRules) -> bytes:
    try:
        parsed = orjson.loads(text)
    except ValueError:
        pass
    else:
        whole = _whole_floats(parsed, rules)
        if whole >= 0:
            dumped = orjson.dumps(parsed, None, orjson.OPT_SORT_KEYS)
            if whole:
                dumped = _as_ints(dumped, whole)
            if dumped and (dumped.isascii() or _is_nfc(dumped)):
                return dumped
    # orjson turns ints beyond 64 bits into floats and knows no NaN; the standard library keeps both.
    try:
        parsed = json.loads(text, strict=False, parse_int=_int_of_text, parse_float=_float_of_text)
    except (ValueError, RecursionError):  # cut off, or text that only begins like JSON
        parsed = text
    return write_canonical(parsed, rules)


def _int_of_text(digits: str) -> int:
    return -int_of_digits(digits[1:]) if digits[0] == "-" else int_of_digits(digits)


def _float_of_text(text: str) -> object:
    value = float(text)
    return value if value - value == 0.0 else Decimal(text)

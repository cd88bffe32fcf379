r"""What are the same arguments.

The canonical form is JSON with sorted keys, no white space and NFC text. Numbers are written by value, so 1 and
1.0 are one; what JSON cannot say stands as ``{"\u0000": [kind, content]}``, which no plain argument can be
taken for, because a key that begins with NUL is always written in quotes after another NUL.

Two ways lead to it. Plain arguments, nearly all there are, are looked over container by container and dumped by
orjson in one go. Anything else is written piece by piece without recursion. Both give the same bytes.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from types import NoneType
from typing import Any, Final

import orjson

from turnwatch.core.events import MISSING
from turnwatch.core.standin import Tagged, Unordered, int_of_digits, stand_in, type_tag
from turnwatch.settings import DEFAULT_VOLATILE_KEYS

MAX_NODES: Final = 1_000_000
MAX_KNOWN_KEYS: Final = 4096
MAX_SET_NESTING: Final = 20

_SCALARS: Final = frozenset({str, int, bool, NoneType})
_TREES: Final = frozenset({dict, list, tuple})
_PLAIN: Final = _SCALARS | _TREES | {float}
_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_JSON_TEXT: Final = re.compile(r"[ \t\r\n]*[\[{]")
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1


def canonical_bytes(args: object, volatile_keys: Iterable[str] = DEFAULT_VOLATILE_KEYS) -> bytes:
    """The canonical form of a tool call's arguments.

    Args:
        args: Any object. A str that is the JSON text of an object or array is what it says.
            MISSING gives no bytes at all, which no argument does.
        volatile_keys: Keys left out at any depth, in any case, ``-`` and ``_`` alike.

    Never raises an Exception. Equal arguments give equal bytes in every process and on every platform.
    """
    try:
        if args is MISSING:
            return b""
        rules = _rules(volatile_keys if type(volatile_keys) is frozenset else frozenset(volatile_keys))
        if type(args) is dict or type(args) is list:
            return _dumped(args, rules) or _Writer(rules).write(args)
        if isinstance(args, str):
            text = str.__str__(args)
            if _JSON_TEXT.match(text):
                return _of_json_text(text, rules)
        return _Writer(rules).write(args)
    except Exception:
        tag = type_tag(type(args))
        return orjson.dumps({"\0": [tag.kind, tag.content]})


class _KeyRules:
    """Which keys are left out, and which are known to need no second look."""

    __slots__ = ("known", "volatile")

    def __init__(self, volatile_keys: frozenset[str]) -> None:
        self.volatile = frozenset(fold_key(key) for key in volatile_keys)
        self.known: set[str] = set()

    def are_plain(self, keys: Iterable[Any]) -> bool:
        for key in keys:
            if type(key) is not str or key[:1] == "\0" or fold_key(key) in self.volatile:
                return False
            if len(self.known) < MAX_KNOWN_KEYS and len(key) <= 64:
                self.known.add(key)
        return True


def fold_key(key: str) -> str:
    """How keys are compared with the volatile ones: Request-Id is request_id."""
    return key.lower().replace("-", "_")


@functools.lru_cache(maxsize=256)
def _rules(volatile_keys: frozenset[str]) -> _KeyRules:
    return _KeyRules(volatile_keys)


def _dumped(root: object, rules: _KeyRules) -> bytes | None:
    """The canonical form straight from orjson, or None when something in it needs the writer."""
    if not _is_plain(root, rules):
        return None
    try:
        dumped = orjson.dumps(root, option=_OPTIONS)
    except TypeError:  # ints beyond 64 bits, lone surrogates, too deep for orjson
        return None
    # No character composes with a quotation mark, so the whole is NFC exactly when each text in it is.
    if dumped.isascii() or unicodedata.is_normalized("NFC", dumped.decode()):
        return dumped
    return None


def _is_plain(root: object, rules: _KeyRules) -> bool:
    """Whether orjson writes ``root`` in canonical form.

    Work per scalar happens inside set() and issuperset(): a Python-level look at each value would cost
    more than dumping it.
    """
    known = rules.known
    nodes: list[Any] = [root]
    left = MAX_NODES
    for node in nodes:
        left -= len(node) + 1
        if left < 0:  # very large, or circular
            return False
        if type(node) is dict:
            if not known.issuperset(node) and not rules.are_plain(node):
                return False
            values = node.values()
        else:
            values = node
        types = set(map(type, values))
        if types <= _SCALARS:
            continue
        if not types <= _PLAIN:
            return False
        if float in types:
            for value in values:
                # v - v is NaN for NaN and the infinities
                if type(value) is float and (value.is_integer() or value - value != 0.0):
                    return False
        nodes.extend([value for value in values if type(value) in _TREES])
    return True


def _of_json_text(text: str, rules: _KeyRules) -> bytes:
    try:
        parsed = orjson.loads(text)
    except ValueError:
        pass
    else:
        dumped = _dumped(parsed, rules)
        if dumped is not None:
            return dumped
    # orjson turns ints beyond 64 bits into floats and knows no NaN; the standard library keeps both.
    try:
        parsed = json.loads(text, strict=False, parse_int=_int_of_text, parse_float=_float_of_text)
    except (ValueError, RecursionError):  # cut off, or text that only begins like JSON
        parsed = text
    return _Writer(rules).write(parsed)


def _int_of_text(digits: str) -> int:
    return -int_of_digits(digits[1:]) if digits[0] == "-" else int_of_digits(digits)


def _float_of_text(text: str) -> object:
    value = float(text)
    return value if value - value == 0.0 else Decimal(text)


class _Ready(bytes):
    """Bytes on the writer's stack that are output, not an argument."""

    __slots__ = ()


class _Leave:
    """Marks on the writer's stack that a container is done. Holds it, so that its id stays its own."""

    __slots__ = ("node",)

    def __init__(self, node: object) -> None:
        self.node = node


_COMMA: Final = _Ready(b",")
_END_LIST: Final = _Ready(b"]")
_END_DICT: Final = _Ready(b"}")
_END_TAG: Final = _Ready(b"]}")


class _Writer:
    """Writes any object's canonical form with a stack of its own, so that depth is no limit."""

    def __init__(self, rules: _KeyRules) -> None:
        self.rules = rules
        self.left = MAX_NODES
        self.path: dict[int, int] = {}  # id of each container being written -> its depth
        self.set_nesting = 0

    def write(self, root: object) -> bytes:
        out: list[bytes] = []
        stack: list[object] = [root]
        while stack:
            node = stack.pop()
            cls = type(node)
            if cls is _Ready:
                out.append(node)  # type: ignore[arg-type]
            elif cls is str:
                out.append(self._text(node))  # type: ignore[arg-type]
            elif node is None:
                out.append(b"null")
            elif cls is bool:
                out.append(b"true" if node else b"false")
            elif cls is int:
                out.append(_integer(node))  # type: ignore[arg-type]
            elif cls is float:
                out.append(_float(node))  # type: ignore[arg-type]
            elif cls is _Leave:
                del self.path[id(node.node)]  # type: ignore[attr-defined]
            else:
                self._open(node, cls, out, stack)
        return b"".join(out)

    def _open(self, node: Any, cls: type, out: list[bytes], stack: list[object]) -> None:
        if cls is Tagged:
            out.append(b'{"\\u0000":["%b",' % node.kind.encode())
            stack += (_END_TAG, node.content)
            return
        if cls is Unordered:
            self._members(node, out)
            return
        depth = self.path.get(id(node))
        if depth is not None:
            out.append(b'{"\\u0000":["circular",%d]}' % (len(self.path) - depth))
            return
        self.left -= 1
        value = node
        if cls not in _TREES:
            value = stand_in(node)
        size = len(value) if type(value) in _TREES else 0
        self.left -= size
        if self.left < 0:
            out.append(b'{"\\u0000":["cut",%d]}' % size)
            return
        self.path[id(node)] = len(self.path)
        stack.append(_Leave(node))
        if type(value) is dict:
            self._items(value, out, stack)
        elif type(value) is list or type(value) is tuple:
            out.append(b"[")
            stack.append(_END_LIST)
            for position in range(size - 1, -1, -1):
                stack.append(value[position])
                if position:
                    stack.append(_COMMA)
        else:
            stack.append(value)

    def _items(self, mapping: dict[Any, Any], out: list[bytes], stack: list[object]) -> None:
        items = list(mapping.items())
        written = {}
        for key, value in items:
            if isinstance(key, str) and fold_key(str.__str__(key)) in self.rules.volatile:
                continue
            written[self._key(key, normalize=True)] = value
        if len(written) < len(items):
            kept = [
                (key, value)
                for key, value in items
                if not (isinstance(key, str) and fold_key(str.__str__(key)) in self.rules.volatile)
            ]
            if len(written) < len(kept):  # two keys that only normalization makes alike: leave them as they are
                written = {self._key(key, normalize=False): value for key, value in kept}
        out.append(b"{")
        stack.append(_END_DICT)
        names = sorted(written, reverse=True)
        for name in names:
            stack += (written[name], _Ready(orjson.dumps(name) + b":"), _COMMA)
        if names:
            stack.pop()  # no comma before the first

    def _key(self, key: object, *, normalize: bool) -> str:
        if type(key) is str and key[:1] != "\0":
            text = unicodedata.normalize("NFC", key) if normalize and not key.isascii() else key
            if _is_encodable(text):
                return text
        return "\0" + self._nested(key).decode()

    def _members(self, node: Unordered, out: list[bytes]) -> None:
        self.left -= len(node.members)
        if self.left < 0:
            out.append(b'{"\\u0000":["cut",%d]}' % len(node.members))
            return
        members = sorted(self._nested(member) for member in node.members)
        out.append(b'{"\\u0000":["set",[' + b",".join(members) + b"]]}")

    def _nested(self, node: object) -> bytes:
        """The whole form of a key or a set's member at once: they are sorted by it."""
        if self.set_nesting >= MAX_SET_NESTING:
            return b'{"\\u0000":["cut",1]}'
        self.set_nesting += 1
        try:
            return self.write(node)
        finally:
            self.set_nesting -= 1

    @staticmethod
    def _text(text: str) -> bytes:
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        try:
            return orjson.dumps(text)
        except TypeError:
            pass
        # Two halves of a pair, as some JSON writers leave them, are the character they say.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if _is_encodable(text):
            return orjson.dumps(unicodedata.normalize("NFC", text))
        return b'{"\\u0000":["text","%b"]}' % text.encode("utf-8", "surrogatepass").hex().encode()


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer(value: int) -> bytes:
    if _INT_MIN <= value <= _INT_MAX:
        return b"%d" % value
    # hex() has no limit on digits
    return b'{"\\u0000":["int","%b"]}' % hex(value).encode()


def _float(value: float) -> bytes:
    if value - value != 0.0:
        return b'{"\\u0000":["float","%b"]}' % str(value).encode()
    if value.is_integer():
        return _integer(int(value))
    return orjson.dumps(value)

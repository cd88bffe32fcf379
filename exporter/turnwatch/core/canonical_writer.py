"""How arguments that are more than plain JSON are written in canonical form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, Final

import orjson

from turnwatch.core.standin import Tagged, Unordered, stand_in
from turnwatch.core.text_form import is_encodable, normalized, quoted
from turnwatch.core.volatile_keys import KeyRules

# Objects can make up their inside without end, and a small graph of shared lists can stand for a huge tree.
MAX_NODES: Final = 250_000
MAX_OBJECT_DEPTH: Final = 200
MAX_NESTING: Final = 20

_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1
_KEY: Final = itemgetter(0)


def write_canonical(root: object, rules: KeyRules) -> bytes:
    """The canonical form of any object, in as many bytes as it needs."""
    return _Writer(rules).write(root).encode()


class _Frame:
    """A container that is being written."""

    __slots__ = ("end", "entries", "is_object", "node")

    def __init__(self, node: object, entries: Iterator[tuple[str, object]], end: str, is_object: bool = False) -> None:
        self.node = node  # held, so that its id stays its own
        self.entries = entries
        self.end = end
        self.is_object = is_object


class _Writer:
    """Writes with a stack of its own, so that depth is no limit."""

    def __init__(self, rules: KeyRules) -> None:
        self.rules = rules
        self.left = MAX_NODES
        self.path: dict[int, int] = {}  # id of each container being written -> its depth
        self.nesting = 0
        self.object_depth = 0  # of those being written, how many are no dict, list or tuple

    def write(self, root: object) -> str:
        out: list[str] = []
        frames = [_Frame(None, iter([("", root)]), "")]
        while frames:
            frame = frames[-1]
            for prefix, node in frame.entries:
                out.append(prefix)
                cls = type(node)
                if cls is str:
                    out.append(_text(node))  # type: ignore[arg-type] # cls says so
                elif node is None:
                    out.append("null")
                elif cls is bool:
                    out.append("true" if node else "false")
                elif cls is int:
                    out.append(_integer(node))  # type: ignore[arg-type] # cls says so
                elif cls is float:
                    out.append(_float(node))  # type: ignore[arg-type] # cls says so
                else:
                    inner = self._open(node, cls, out)
                    if inner is not None:
                        frames.append(inner)
                        break
            else:
                frames.pop()
                out.append(frame.end)
                self.object_depth -= frame.is_object
                self.path.pop(id(frame.node), None)
        return "".join(out)

    def _open(self, node: Any, cls: type, out: list[str]) -> _Frame | None:
        """Begin a container, or write what has no inside."""
        if cls is Tagged:
            out.append(f'{{"\\u0000":["{node.kind}",')
            return _Frame(node, iter([("", node.content)]), "]}")
        if cls is Unordered:
            self._write_members(node.members, out)
            return None
        depth = self.path.get(id(node))
        if depth is not None:
            # How far up, not where: the same structure is the same wherever it stands.
            out.append(f'{{"\\u0000":["circular",{len(self.path) - depth}]}}')
            return None
        is_object = cls is not dict and cls is not list and cls is not tuple
        value = stand_in(node) if is_object else node
        size = len(value) if isinstance(value, dict | list | tuple) else 1
        if is_object:
            self.object_depth += 1
        if not self._afford(size, out):
            self.object_depth -= is_object
            return None
        self.path[id(node)] = len(self.path)
        if isinstance(value, dict):
            out.append("{")
            return _Frame(node, self._entries(value), "}", is_object)
        if isinstance(value, list | tuple):
            out.append("[")
            return _Frame(node, zip(chain(("",), repeat(",")), value, strict=False), "]", is_object)
        return _Frame(node, iter([("", value)]), "", is_object)

    def _afford(self, size: int, out: list[str]) -> bool:
        """Whether a container of this size may still be written. The outermost always is."""
        if self.path:
            self.left -= size + 1
        if self.left >= 0 and self.object_depth <= MAX_OBJECT_DEPTH:
            return True
        out.append(f'{{"\\u0000":["cut",{size}]}}')
        return False

    def _entries(self, mapping: dict[Any, Any]) -> Iterator[tuple[str, object]]:
        items = list(mapping.items())
        if not self.rules.are_plain([key for key, _ in items]):
            kept = [(key, value) for key, value in items if not self.rules.is_volatile(key)]
            items = [(self._key(key), value) for key, value in kept]
            if len(dict(items)) < len(items):  # keys that only normalization makes alike stay as they are
                items = [(self._key(key, as_it_is=True), value) for key, value in kept]
        items.sort(key=_KEY)
        written = self.rules.written
        prefixes = [written.get(key) or quoted(key) + ":" for key, _ in items]
        prefixes[1:] = ["," + prefix for prefix in prefixes[1:]]
        return zip(prefixes, [value for _, value in items], strict=True)

    def _key(self, key: object, *, as_it_is: bool = False) -> str:
        """A key as text. One that is not text, or looks like this form, begins with NUL and is written in full."""
        if issubclass(type(key), str):
            text = str.__str__(key)
            plain = normalized(text)
            if plain is not None and plain[:1] != "\0":
                return text if as_it_is and is_encodable(text) else plain
        return "\0" + self._nested(key)

    def _write_members(self, members: list[object], out: list[str]) -> None:
        if self._afford(len(members), out):
            written = sorted(self._nested(member) for member in members)
            out.append('{"\\u0000":["set",[' + ",".join(written) + "]]}")

    def _nested(self, node: object) -> str:
        """The whole form of a key or a set's member at once: they are sorted by it."""
        if self.nesting >= MAX_NESTING:
            return '{"\\u0000":["cut",1]}'
        self.nesting += 1
        try:
            return self.write(node)
        finally:
            self.nesting -= 1


def _text(text: str) -> str:
    plain = normalized(text)
    if plain is None:
        return f'{{"\\u0000":["text","{text.encode("utf-8", "surrogatepass").hex()}"]}}'
    return quoted(plain)


def _integer(value: int) -> str:
    if _INT_MIN <= value <= _INT_MAX:
        return str(value)
    # hex() has no limit on digits
    return f'{{"\\u0000":["int","{hex(value)}"]}}'


def _float(value: float) -> str:
    if value - value != 0.0:
        return f'{{"\\u0000":["float","{value}"]}}'
    if value.is_integer():
        return _integer(int(value))
    text = repr(value)
    return orjson.dumps(value).decode() if "e" in text else text

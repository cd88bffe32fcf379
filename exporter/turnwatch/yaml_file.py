"""Which line of a YAML file a key stands on, so that a fault can be named by key, file and line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from turnwatch.errors import SettingsError

MAX_BYTES: Final = 4_000_000
MAX_NODES: Final = 200_000
MAX_DEPTH: Final = 50

_UNREADABLE: Final = object()

KeyPath = tuple[str, ...]


@dataclass(slots=True)
class YamlDocument:
    """What a YAML or JSON file says.

    Attributes:
        name: The file as the user named it.
        data: Its top-level mapping; an empty file is an empty mapping. Keys are always text.
        lines: Line number (from 1) of each key and list item, by its path.
    """

    name: str
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def line_of(self, path: KeyPath) -> int:
        """The line of the key, or of the nearest key above it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def place(self, path: KeyPath) -> str:
        """Where a key stands, for a message: ``turnwatch.yaml, line 3``."""
        return f"{self.name}, line {self.line_of(path)}"


class _Loader(yaml.SafeLoader):
    """YAML without dates: 2026-01-01 is text here, as no setting is a date."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml_file(path: str | Path, faults: list[str] | None = None) -> YamlDocument:
    """Read a YAML (or JSON) file whose top level is a mapping.

    Args:
        path: The file.
        faults: Takes what is wrong with single keys, which are left out (of a repeated one, all but the first). None
            raises it.

    Raises:
        SettingsError: It cannot be read, is no YAML, repeats a key, or is something else than a mapping. Each
            message names file and line.
    """
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise SettingsError(f"{name}: larger than {MAX_BYTES} bytes")
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"{name}: cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{name}: is not UTF-8 text") from None
    return _parse(text, name, faults)


def parse_yaml_value(text: str) -> Any:
    """One YAML value, as an environment variable holds it: ``5``, ``true``, ``[a, b]``, ``{max_usd: 1}``.

    Raises:
        SettingsError: It is no YAML.
    """
    reader = _Reader("")
    value = reader.value(_compose(text, ""), (), 0)
    if reader.faults:
        raise SettingsError(reader.faults[0])
    return value


def _parse(text: str, name: str, faults: list[str] | None) -> YamlDocument:
    node = _compose(text, name)
    if node is None:
        return YamlDocument(name, {})
    if not isinstance(node, yaml.MappingNode):
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return YamlDocument(name, {})
        kind = "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
        raise SettingsError(f"{name}, line {_line(node)}: the top level must be a mapping of keys, not {kind}")
    reader = _Reader(name)
    data = reader.value(node, (), 0)
    if faults is not None:
        faults += reader.faults
    elif reader.faults:
        raise SettingsError("\n".join(reader.faults))
    return YamlDocument(name, data, reader.lines)


def _compose(text: str, name: str) -> yaml.Node | None:
    place = f"{name}, line " if name else "line "
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = "tabs cannot indent YAML, use spaces" if "'\\t'" in str(error.problem) else error.problem
        raise SettingsError(f"{place}{mark.line + 1 if mark else 1}: no valid YAML: {problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SettingsError(f"{place}{line}: no valid YAML: a character that YAML does not allow") from None
    except RecursionError:
        raise SettingsError(f"{place}1: nested too deep") from None
    return node


class _Reader:
    """Turns a tree of YAML nodes into plain values and notes the line of every key."""

    def __init__(self, name: str) -> None:
        self.place = f"{name}, line " if name else "line "
        self.lines: dict[KeyPath, int] = {}
        self.faults: list[str] = []
        self.nodes = 0

    def value(self, node: yaml.Node | None, path: KeyPath, depth: int) -> Any:
        # Aliases can make a small file as large as they like.
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise SettingsError(f"{self.place}{_line(node)}: too large, or nested too deep")
        if node is None:
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return self._sequence(node, path, depth)
        return self._scalar(node, path)

    def _sequence(self, node: yaml.SequenceNode, path: KeyPath, depth: int) -> Any:
        found = []
        for position, item in enumerate(node.value):
            here = (*path, str(position))
            self.lines[here] = _line(item)
            found.append(self.value(item, here, depth + 1))
        return _UNREADABLE if _UNREADABLE in found else found

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.faults.append(f"{self.place}{_line(key_node)}: {_dotted(path)}a key must be text")
                continue
            if key_node.tag == "tag:yaml.org,2002:merge":
                below = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for part in reversed(below):
                    value = self.value(part, path, depth + 1)
                    if isinstance(value, dict):
                        merged.update(value)
                continue
            # The text as written: a tool may be called "on" or 404, which YAML would read as something else.
            key = str(key_node.value)
            here = (*path, key)
            if key in found:
                first = self.lines[here]
                self.faults.append(f"{self.place}{_line(key_node)}: {'.'.join(here)} stands here and on line {first}")
                continue
            self.lines[here] = _line(key_node)
            value = self.value(value_node, here, depth + 1)
            if value is not _UNREADABLE:
                found[key] = value
        return {**merged, **found}

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        constructor = yaml.constructor.SafeConstructor()
        try:
            value = constructor.construct_object(node)
        except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, ValueError):
            value = _UNREADABLE
        # Dates and bytes, which a tag can ask for, are no setting's.
        if value is not None and not isinstance(value, (str, int, float)):
            self.faults.append(f"{self.place}{_line(node)}: {_dotted(path)}the value cannot be read")
            return _UNREADABLE
        return value


def _dotted(path: KeyPath) -> str:
    return f"{'.'.join(path)}: " if path else ""


def _line(node: yaml.Node | None) -> int:
    return int(node.start_mark.line) + 1 if node is not None else 1

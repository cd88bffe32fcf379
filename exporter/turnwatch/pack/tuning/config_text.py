"""Suggestions as YAML, with the evidence as comments."""

from __future__ import annotations

import copy
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from turnwatch.core.printable import printable
from turnwatch.pack.tuning.suggestions import Path, Suggestion

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WIDTH: Final = 100


def with_suggestions(present: Mapping[str, Any], suggestions: Iterable[Suggestion]) -> dict[str, Any]:
    """What a settings file says, with the suggested values in it."""
    result: dict[str, Any] = copy.deepcopy(dict(present))
    for suggestion in suggestions:
        *sections, key = suggestion.path
        section = result
        for name in sections:
            inner = section.get(name)
            if isinstance(inner, (int, float)):  # a threshold given as one number is the warning one
                inner = {"warning": inner}
            section[name] = section = inner if isinstance(inner, dict) else {}
        section[key] = suggestion.value
    return result


def config_text(config: Mapping[str, Any], suggestions: Iterable[Suggestion], heading: Iterable[str] = ()) -> str:
    """A settings file.

    Args:
        config: What it says.
        suggestions: Whose evidence stands above their keys.
        heading: Comment lines at the top.
    """
    why = {suggestion.path: suggestion.why for suggestion in suggestions}
    lines = [*(line for text in heading for line in _comment(text, "")), *_lines(config, why, ())]
    return "\n".join(lines) + "\n"


def _lines(section: Mapping[str, Any], why: Mapping[Path, str], path: Path) -> Iterator[str]:
    indent = "  " * len(path)
    for key, value in section.items():
        here = (*path, key)
        if here in why:
            yield from _comment(why[here], indent)
        if isinstance(value, Mapping) and value:
            yield f"{indent}{_key(key)}:"
            yield from _lines(value, why, here)
        else:
            yield f"{indent}{_key(key)}: {_in_one_line(value)}"


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _in_one_line(key)


def _in_one_line(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_in_one_line(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_in_one_line(entry) for entry in value) + "]"
    # Of all YAML's ways to write a text only this one never takes more than a line.
    style = '"' if isinstance(value, str) else None
    # In a list, since YAML would put the end of the document behind a scalar.
    return yaml.safe_dump([value], default_flow_style=True, default_style=style, width=sys.maxsize).strip()[1:-1]


def _comment(text: str, indent: str) -> Iterator[str]:
    for line in textwrap.wrap(printable(text), _WIDTH - len(indent) - 2, break_on_hyphens=False):
        yield f"{indent}# {line}"

"""What of an Alertmanager file may be shown: everything but what nobody else must read."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from turnwatch.pack.render import as_yaml
from turnwatch.pack.yaml_text import value_of

HIDDEN: Final = "<hidden>"
_SECRET: Final = re.compile(
    r"(.*_)?(url|password|secret|token|key|credentials|authorization|cookie)(_.*)?", re.IGNORECASE
)
"""Keys whose values Alertmanager itself hides, and whatever is called alike. URLs of webhooks are secrets, too."""


def as_shown(content: str) -> str:
    """Return an Alertmanager file with its secrets hidden, and its keys sorted; nothing of what cannot be read."""
    try:
        document = value_of(content)
    except yaml.YAMLError:
        return "(not YAML)\n"
    return as_yaml(_hidden(document)) if isinstance(document, dict) else ""


def _hidden(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _hidden(below, str(name)) for name, below in value.items()}
    if isinstance(value, list):
        return [_hidden(below, key) for below in value]
    is_secret = bool(_SECRET.fullmatch(key)) and not key.endswith("_file") and isinstance(value, str)
    return HIDDEN if is_secret and value else value

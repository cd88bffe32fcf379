"""What of an Alertmanager file is still the example's and leads nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

_PLACEHOLDER: Final = re.compile(r"\bexample\.(?:com|org|net)\b|127\.0\.0\.1:8080\b")


def placeholders(document: Any) -> list[str]:
    """Return where receivers and global settings have addresses that nobody owns, as ``agents-page: … (example.com)``.

    The rest of a value is not repeated: it may hold a password.
    """
    found = list(_below(document.get("global") or {}, "global"))
    for receiver in document.get("receivers") or []:
        for key, value in receiver.items():
            found += _below(value, f"{receiver.get('name')}: {key}")
    return list(dict.fromkeys(found))


def _below(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _below(below, f"{place}.{key}")
    elif isinstance(value, list):
        for below in value:
            yield from _below(below, place)
    elif isinstance(value, str) and (match := _PLACEHOLDER.search(value)):
        yield f"{place} ({match[0]})"

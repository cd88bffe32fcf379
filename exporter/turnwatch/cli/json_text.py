"""JSON for people's programs, of text from outside."""

from __future__ import annotations

from typing import Any

import orjson


def json_text(value: Any, option: int = 0) -> bytes:
    """The value as JSON.

    File names and labels may hold what UTF-8 cannot (a name in another encoding, half a pair of surrogates); that is
    written as "?".

    Args:
        value: What ``orjson`` takes.
        option: One of its options.
    """
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return orjson.dumps(_in_utf8(value), option=option)


def _in_utf8(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_in_utf8(key): _in_utf8(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_utf8(entry) for entry in value]
    return value

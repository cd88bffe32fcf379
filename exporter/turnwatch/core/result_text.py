"""What does a tool's result say, whatever it is wrapped in?"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

# How the JSON text of what is opened here begins. Other JSON is text like any other.
ENVELOPES: Final = (
    *('{"content":[', '{"content": [', '[{"type":"text"', '[{"type": "text"'),
    *('{"output":"', '{"output": "'),
)
_JSON_OPTIONS: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def result_text(result: object) -> tuple[str, bool]:
    """The text of a result, and whether it shows what the result holds. Never raises."""
    if isinstance(result, str):
        enclosed = _enclosed(_parsed(result)) if result.startswith(ENVELOPES) else None
        return str(result) if enclosed is None else enclosed, True
    if isinstance(result, (bytes, bytearray, memoryview)):
        return _decoded(bytes(result)), True
    if result is None:
        return "", True
    enclosed = _enclosed(result)
    if enclosed is not None:
        return enclosed, True
    shown = True

    def plain(value: object) -> Any:
        nonlocal shown
        inner = _plain(value)
        if type(inner) is str and inner.startswith("<") and not isinstance(value, (bytes, bytearray)):
            shown = False
        return inner

    try:
        return orjson.dumps(result, default=plain, option=_JSON_OPTIONS).decode(), shown
    except Exception:
        try:
            text = _ADDRESS.sub("", repr(result))
        except Exception:
            text = f"<{type(result).__name__}>"
        return text, not text.startswith("<")


def _parsed(text: str) -> object:
    try:
        return orjson.loads(text)
    except ValueError:
        return None  # cut off, or text that only begins so


def _enclosed(result: object) -> str | None:
    """The text in blocks of text, as MCP and model APIs have it, or the output of a shell; None of anything else."""
    output, about = _field(result, "output"), _field(result, "metadata")
    if isinstance(output, str) and isinstance(about, dict):
        failed = about.get("exit_code")
        return f"exit code {failed}\n{output}" if failed else output
    blocks = result if isinstance(result, list) else _field(result, "content")
    if not isinstance(blocks, list) or not blocks or any(_field(block, "type") != "text" for block in blocks):
        return None
    texts = [_field(block, "text") for block in blocks]
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else None


def _field(record: object, name: str) -> Any:
    if isinstance(record, dict):
        return record.get(name)
    # Of a data model alone: what other objects compute when they are asked is theirs.
    return getattr(record, name, None) if hasattr(type(record), "model_fields") else None


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:  # no text; to replace what is none in a picture of 5 MB takes a fifth of a second
        return content.decode("latin-1")


def _plain(value: object) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, (bytes, bytearray)):
        return _decoded(bytes(value))
    return _ADDRESS.sub("", repr(value))

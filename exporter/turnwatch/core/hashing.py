"""The input hash: which calls are the same call."""

from __future__ import annotations

import hashlib
import hmac
import os
import unicodedata
from collections.abc import Iterable
from typing import Final

from turnwatch.core.binding import bind_arguments
from turnwatch.core.canonical import canonical_bytes
from turnwatch.core.default import known_watch
from turnwatch.core.events import MISSING
from turnwatch.default_volatile_keys import DEFAULT_VOLATILE_KEYS

__all__ = ["HASH_KEY_VARIABLE", "bind_arguments", "hash_of", "input_hash"]

HASH_KEY_VARIABLE: Final = "TURNWATCH_HASH_KEY"

MAX_KEPT_PREFIXES: Final = 1024

_prefixes: dict[str, bytes] = {}

# os.environ.get takes longer than the whole hash of a short call when the variable is not set; the mapping
# behind it answers at once and sees every change made through os.environ.
_environment: Final = getattr(os.environ, "_data", None)
_encoded_variable: Final = os.environ.encodekey(HASH_KEY_VARIABLE) if _environment is not None else HASH_KEY_VARIABLE


def input_hash(
    tool: str,
    args: object = MISSING,
    *,
    volatile_keys: Iterable[str] | None = None,
    key: str | bytes | None = None,
) -> str:
    """The identity of a tool call: 16 hexadecimal characters.

    SHA-256 over the tool's name, a NUL and the canonical form of the arguments, cut to 64 bits. With a key it is
    HMAC-SHA-256, so that arguments with few possible values cannot be guessed back from it.

    Args:
        tool: The tool's name.
        args: The arguments: any object, or JSON text. MISSING, the default, is not the same as empty. Of an object
            without fields and a repr of its own only the type counts: a turn compares no calls with such arguments.
        volatile_keys: Argument names that do not count, at any depth. None takes those of the process's watch, so
            that the hash is the one under which a call is counted; the default ones as long as nothing was
            configured and no turn opened.
        key: None takes the watch's in the same way, and without one the environment's (TURNWATCH_HASH_KEY, looked
            up at each call); b"" means no key.

    Never raises an Exception.
    """
    watch = known_watch()
    if watch is not None:
        if volatile_keys is None:
            volatile_keys = watch.volatile_keys(tool if type(tool) is str else "")
        if key is None:
            key = watch.settings.hash_key
    return hash_of(tool, canonical_bytes(args, DEFAULT_VOLATILE_KEYS if volatile_keys is None else volatile_keys), key)


def hash_of(tool: str, canonical: bytes, key: str | bytes | None = None) -> str:
    """The input hash of arguments whose canonical form is at hand.

    Args:
        tool: The tool's name.
        canonical: What ``canonical_bytes`` gave for the arguments.
        key: As in ``input_hash``.
    """
    message = (_prefixes.get(tool) if type(tool) is str else None) or _prefix(tool)
    message += canonical
    if key is None and (_environment is None or _encoded_variable in _environment):
        key = os.environ.get(HASH_KEY_VARIABLE)
    if not key:
        return hashlib.sha256(message).digest()[:8].hex()
    secret = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    return hmac.digest(secret, message, "sha256")[:8].hex()


def _prefix(tool: object) -> bytes:
    if type(tool) is not str:
        return canonical_bytes(tool, ()) + b"\0"
    name = tool if tool.isascii() else unicodedata.normalize("NFC", tool)
    prefix = (name + "\0").encode("utf-8", "surrogatepass")
    if len(_prefixes) < MAX_KEPT_PREFIXES and len(tool) <= 100:
        _prefixes[tool] = prefix
    return prefix

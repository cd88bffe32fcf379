"""Which argument names do not count, because every call has another value there."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from typing import Any, Final

from turnwatch.core.text_form import is_encodable, quoted
from turnwatch.default_volatile_keys import DEFAULT_VOLATILE_KEYS

MAX_KNOWN_KEYS: Final = 4096
MAX_KNOWN_LENGTH: Final = 64


class KeyRules:
    """Which keys are left out, and which are known to need no second look.

    Attributes:
        volatile: The keys left out, folded.
        known: Keys that stay and are written as they are. Only ever grows, up to a bound.
        written: The known keys as they are written.
    """

    __slots__ = ("known", "volatile", "written")

    def __init__(self, volatile_keys: Iterable[str]) -> None:
        self.volatile = frozenset(fold_key(key) for key in volatile_keys if isinstance(key, str))
        self.known: set[str] = set()
        self.written: dict[str, str] = {}

    def is_volatile(self, key: object) -> bool:
        """Whether a key is left out. Only text can be."""
        return issubclass(type(key), str) and fold_key(str.__str__(key)) in self.volatile

    def are_plain(self, keys: Iterable[Any]) -> bool:
        """Whether all keys are text that stays and is written as it is. Remembers them."""
        for key in keys:
            if type(key) is not str:
                return False
            if key in self.known:
                continue
            if key[:1] == "\0" or fold_key(key) in self.volatile:
                return False
            if not is_encodable(key) or not unicodedata.is_normalized("NFC", key):
                return False
            if len(self.known) < MAX_KNOWN_KEYS and len(key) <= MAX_KNOWN_LENGTH:
                self.written[key] = quoted(key) + ":"
                self.known.add(key)
        return True


def fold_key(key: str) -> str:
    """How keys are compared with the volatile ones: Request-Id is request_id."""
    return key.lower().replace("-", "_")


def rules_for(volatile_keys: Iterable[str]) -> KeyRules:
    """The rules for these keys; they are kept, because what they know of other keys makes the next call fast."""
    try:
        return _rules(volatile_keys if type(volatile_keys) is frozenset else frozenset(volatile_keys))
    except Exception:
        return DEFAULT_RULES


@functools.lru_cache(maxsize=256)
def _rules(volatile_keys: frozenset[str]) -> KeyRules:
    return KeyRules(volatile_keys)


DEFAULT_RULES: Final = _rules(DEFAULT_VOLATILE_KEYS)

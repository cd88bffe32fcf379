"""May an identical call get the first one's result again, and which content is that?"""

from __future__ import annotations

import copy
import hashlib
import io
import pickle
from collections.abc import Callable
from types import NoneType
from typing import Any, Final, final

import cachetools
import orjson

from turnwatch.core.canonical import canonical_bytes
from turnwatch.core.forking import fork_safe_lock

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_RESULT_BYTES: Final = 1024 * 1024
_BYTES_AN_ENTRY: Final = 512

_IMMUTABLE: Final = frozenset({str, bytes, int, float, bool, complex, NoneType})
_OPTIONS: Final = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS

Key = tuple[str, str, bytes]


def plain_json(args: object) -> bytes | None:
    """Arguments as JSON; None where they hold something that JSON does not, because such cannot be told apart."""
    try:
        return orjson.dumps(args, option=_OPTIONS)
    except TypeError:
        return None


def exact_key(raw: bytes, args: object, volatile_keys: frozenset[str]) -> bytes:
    """The identity of arguments, for handing out results: stricter than the input hash.

    Args:
        raw: The arguments as ``plain_json`` gives them.
        args: The arguments.
        volatile_keys: Those that somebody said make no difference.
    """
    if volatile_keys or b"null" in raw:  # orjson writes NaN as null
        raw = canonical_bytes(args, volatile_keys)
    return raw if len(raw) <= 256 else hashlib.blake2b(raw, digest_size=16).digest()


@final
class Kept:
    """A result's content, as it was when the tool returned it."""

    __slots__ = ("content", "epoch", "expires", "kind", "size")

    def __init__(self, kind: str, content: Any, size: int) -> None:
        self.kind = kind
        self.content = content
        self.size = size + _BYTES_AN_ENTRY
        self.epoch = 0
        self.expires = 0.0

    @classmethod
    def of(cls, result: object) -> Kept | None:
        """The content of a result; None where it cannot be had twice (a stream, an iterator) or is very large."""
        kind = type(result)
        if kind in _IMMUTABLE:
            size = len(result) if isinstance(result, str | bytes) else 0
            return cls("itself", result, size) if size <= MAX_RESULT_BYTES else None
        if isinstance(result, io.IOBase) or any(hasattr(result, name) for name in _CONSUMED) or _is_unread(result):
            return None
        written = _Written()
        try:
            pickle.Pickler(written, pickle.HIGHEST_PROTOCOL).dump(result)
        except _TooLargeError:
            return None
        except Exception:
            return cls._copied(result)
        return cls("pickled", bytes(written.content), len(written.content))

    @classmethod
    def _copied(cls, result: object) -> Kept | None:
        try:
            # How large that is, nobody knows: as large as a result may be.
            return cls("copied", copy.deepcopy(result), MAX_RESULT_BYTES)
        except Exception:
            return None

    def get(self) -> Any:
        """The content once more, its own object each time, so that what one caller changes no other sees."""
        if self.kind == "itself":
            return self.content
        return pickle.loads(self.content) if self.kind == "pickled" else copy.deepcopy(self.content)


class _TooLargeError(Exception):
    """A result is larger than what is kept."""


@final
class _Written:
    """Where a result is written to, as far as it is kept: the rest of a very large one is not written at all."""

    __slots__ = ("content",)

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, piece: bytes) -> int:
        if len(self.content) + len(piece) > MAX_RESULT_BYTES:
            raise _TooLargeError
        self.content += piece
        return len(piece)


_CONSUMED: Final = ("__next__", "__anext__", "__await__")


def _is_unread(result: object) -> bool:
    """Whether this is a response whose body is still on its way: writing it out would take it from the caller."""
    return (
        getattr(result, "_content_consumed", None) is False  # of requests
        or getattr(result, "is_stream_consumed", None) is False  # of httpx
    )


@final
class KeptResults:
    """Results that identical calls get again, until their time is over or something changed. Thread-safe.

    An epoch is a stretch in which nothing changed. It ends when a call that may change something starts, and once
    more when that ends, so that a read which ran beside a write is never handed out after it.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        # Not a cache with times of its own: what is out of date must not be handed out, but need not make room
        # before room is needed, and looking for it at every call costs more than the rest of a lookup.
        self._kept: cachetools.LRUCache[Key, Kept] = cachetools.LRUCache(MAX_BYTES, getsizeof=_size)
        self._clock = clock
        self._lock = fork_safe_lock()
        self._epoch = 0

    @property
    def epoch(self) -> int:
        """The number of the current epoch."""
        return self._epoch

    def something_changes(self) -> int:
        """A call that may change something starts or ends: everything kept is out of date.

        Returns:
            The number of the epoch that begins.
        """
        with self._lock:
            self._epoch += 1
            return self._epoch

    def get(self, key: Key) -> Kept | None:
        """The result of the identical call before, if it still holds."""
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or kept.epoch != self._epoch or kept.expires <= self._clock():
            return None
        return kept

    def keep(self, key: Key, kept: Kept, epoch: int, seconds: float) -> None:
        """Keep a result for so many seconds.

        Args:
            key: Whose result it is.
            kept: Its content.
            epoch: The epoch it belongs to; when that is over, it is not kept.
            seconds: Its lifetime.
        """
        kept.epoch = epoch
        kept.expires = self._clock() + seconds
        with self._lock:
            if epoch == self._epoch:
                self._kept[key] = kept


def _size(kept: Kept) -> int:
    return kept.size

"""Which of many things are remembered? The latest, up to a bound."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep_latest(kept: OrderedDict[K, V], key: K, value: V, at_most: int) -> None:
    """Keep a value as the latest, and let go of the oldest where that makes one too many."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > at_most:
        kept.popitem(last=False)

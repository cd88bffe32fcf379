"""How often each (tool, input hash) was seen, in bounded memory."""

from __future__ import annotations

from collections.abc import Hashable

from turnwatch.core.windows import CallTimes


class KeyCount:
    """One key that was seen more than once."""

    __slots__ = ("count", "times")

    def __init__(self, count: int, times: CallTimes) -> None:
        self.count = count
        self.times = times


class KeyTable:
    """Counts keys; past the bound the oldest key seen only once goes first, then the one repeated longest ago.

    Attributes:
        dropped: How many keys were forgotten.
    """

    __slots__ = ("_bound", "_once", "_repeated", "dropped")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._once: dict[Hashable, float] = {}
        self._repeated: dict[Hashable, KeyCount] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._once) + len(self._repeated)

    def count(self, key: Hashable) -> int:
        """How often this key was seen, as far as remembered."""
        seen = self._repeated.get(key)
        return int(key in self._once) if seen is None else seen.count

    def add(self, key: Hashable, at: float, window: float) -> KeyCount | None:
        """Count one call of ``key``; None for its first, its record from the second on."""
        seen = self._repeated.pop(key, None)
        if seen is not None:
            self._repeated[key] = seen  # last in line: what a turn is busy repeating is not what to forget
            seen.count += 1
            seen.times.add(at, window)
            return seen
        first = self._once.pop(key, None)
        if first is None:
            self._once[key] = at
            if len(self._once) + len(self._repeated) > self._bound:
                self._drop()
            return None
        seen = KeyCount(2, CallTimes(first))
        seen.times.add(at, window)
        self._repeated[key] = seen
        return seen

    def _drop(self) -> None:
        self.dropped += 1
        # The newest singleton is the key being added: dropping it would blind a turn full of repeats.
        if len(self._once) > 1:
            del self._once[next(iter(self._once))]
        else:
            del self._repeated[next(iter(self._repeated))]

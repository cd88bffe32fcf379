"""How often each (tool, input hash) was seen, in bounded memory."""

from __future__ import annotations

from turnwatch.core.windows import CallTimes


def key_of(tool: str, input_hash: str) -> int:
    """The key of a call: a number takes a third of the memory of the pair."""
    return hash((tool, input_hash))


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
        self._once: dict[int, float] = {}
        self._repeated: dict[int, KeyCount] | None = None  # most turns repeat nothing
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._once) + len(self._repeated or ())

    def count(self, key: int) -> int:
        """How often this key was seen, as far as remembered."""
        seen = self._repeated.get(key) if self._repeated else None
        return int(key in self._once) if seen is None else seen.count

    def again(self, key: int) -> KeyCount | None:
        """The record of a key that was seen more than once, as far as remembered."""
        return self._repeated.get(key) if self._repeated else None

    def add(self, key: int, at: float, window: float) -> KeyCount | None:
        """Count one call of ``key``; None for its first, its record from the second on."""
        once, repeated = self._once, self._repeated
        if repeated and key in repeated:
            seen = repeated.pop(key)
            repeated[key] = seen  # last in line: what a turn is busy repeating is not what to forget
            seen.count += 1
            seen.times.add(at, window)
            return seen
        if key not in once:
            once[key] = at
            if len(once) + (len(repeated) if repeated else 0) > self._bound:
                self._drop()
            return None
        seen = KeyCount(2, CallTimes(once.pop(key)))
        seen.times.add(at, window)
        if repeated is None:
            repeated = self._repeated = {}
        repeated[key] = seen
        return seen

    def _drop(self) -> None:
        self.dropped += 1
        # The newest singleton is the key being added: dropping it would blind a turn full of repeats.
        keys = self._once if len(self._once) > 1 or not self._repeated else self._repeated
        del keys[next(iter(keys))]

"""The first loop detectors as ready rules: the same call too often in a window, or in a conversation.

They see arguments only, so they fire on agents that work as well (docs/detection.md has the measurements);
the engine is the better judge. They are kept because they are simple, and right for agents that should never
ask the same thing twice.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from typing import Final

from turnwatch.core.canonical import canonical_bytes, hides_content
from turnwatch.core.events import MISSING
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.hashing import input_hash
from turnwatch.core.latest import keep_latest
from turnwatch.errors import LoopDetected

_MAX_CONVERSATIONS: Final = 10_000
_MAX_KEYS: Final = 10_000
_WIDER: Final = 5


class LoopDetector:
    """Counts identical calls, in the last ``window`` calls or, with ``window=None``, in the whole conversation.

    ::

        detector = LoopDetector(window=10, threshold=4)
        detector.observe("search", {"q": "x"})          # raises LoopDetected at the 4th of the last 10

        detector = LoopDetector(window=None, threshold=2)
        if detector.record("search", {"q": "x"}):       # True at the 2nd of the conversation
            ...

    Thread-safe. Conversations do not mix; those idle longest are forgotten past 10,000.

    Args:
        window: How many of the latest calls are looked at; None looks at the whole conversation.
        threshold: At this many identical calls it is a loop; the first call is never one.
        tool_thresholds: Thresholds of single tools.
        backoff_window: How many of the latest calls the advice to wait looks at; five windows when left out.
        backoff_seconds: The first advised wait; it doubles with every further identical call.
        max_backoff_seconds: The longest advised wait.

    Raises:
        ValueError: A window or a threshold is below 1, or a window smaller than a threshold, which it could not reach.
    """

    def __init__(
        self,
        window: int | None = 10,
        threshold: int = 4,
        *,
        tool_thresholds: Mapping[str, int] | None = None,
        backoff_window: int | None = None,
        backoff_seconds: float = 1.0,
        max_backoff_seconds: float = 60.0,
    ) -> None:
        self.window = window
        self.threshold = threshold
        self.tool_thresholds = dict(tool_thresholds or {})
        thresholds = (threshold, *self.tool_thresholds.values())
        if (window is not None and window < 1) or min(thresholds) < 1:
            raise ValueError("window and thresholds must be at least 1")
        if window is not None and window < max(2, *thresholds):
            raise ValueError(f"a window of {window} calls cannot hold {max(2, *thresholds)} identical ones")
        self.backoff_seconds = backoff_seconds
        self.max_backoff_seconds = max_backoff_seconds
        self._backoff_window = backoff_window or (window or 10) * _WIDER
        self._conversations: OrderedDict[str, _Recent] = OrderedDict()
        self._lock = fork_safe_lock()

    def observe(self, tool: str, args: object = MISSING, *, conversation_id: str = "") -> float:
        """Count one call.

        Returns:
            Seconds that the caller is advised to wait before running it: 0.0 for a call that the wider window
            has not seen, then doubling.

        Raises:
            LoopDetected: The call was made too often. The message names the tool and numbers, no arguments.
        """
        count, wider = self._count(tool, args, conversation_id)
        if count >= self._limit(tool):
            raise LoopDetected(self._message(tool, count))
        return self._advice(wider)

    def record(self, tool: str, args: object = MISSING, *, conversation_id: str = "") -> bool:
        """Count one call; whether it was made too often. The same as ``observe``, without an exception."""
        count, _ = self._count(tool, args, conversation_id)
        return count >= self._limit(tool)

    def forget(self, conversation_id: str = "") -> None:
        """Start a conversation from nothing."""
        with self._lock:
            self._conversations.pop(conversation_id, None)

    def _limit(self, tool: str) -> int:
        return max(2, self.tool_thresholds.get(tool, self.threshold))

    def _advice(self, wider: int) -> float:
        if wider < 2:
            return 0.0
        return min(self.max_backoff_seconds, self.backoff_seconds * 2.0 ** min(wider - 2, 62))

    def _message(self, tool: str, count: int) -> str:
        where = "in this conversation" if self.window is None else f"in the last {self.window} calls"
        return f"{tool} was called {count} times with the same arguments {where}"

    def _count(self, tool: str, args: object, conversation_id: str) -> tuple[int, int]:
        """How often the call is in the window and in the wider window, this call included."""
        if args is MISSING or hides_content(canonical_bytes(args)):
            return 0, 0  # calls without arguments to compare are not identical calls
        key = input_hash(tool, args)
        with self._lock:
            recent = self._conversations.get(conversation_id)
            if recent is None:
                recent = self._conversations[conversation_id] = _Recent(self.window, self._backoff_window)
                if len(self._conversations) > _MAX_CONVERSATIONS:
                    self._conversations.popitem(last=False)
            else:
                self._conversations.move_to_end(conversation_id)
            return recent.add(key)


class _Recent:
    """The latest calls of one conversation."""

    __slots__ = ("_ever", "_wider", "_window")

    def __init__(self, window: int | None, wider: int) -> None:
        self._window = None if window is None else _Window(window)
        self._wider = _Window(max(wider, window or 0))
        self._ever: OrderedDict[str, int] = OrderedDict()

    def add(self, key: str) -> tuple[int, int]:
        wider = self._wider.add(key)
        if self._window is not None:
            return self._window.add(key), wider
        count = self._ever.get(key, 0) + 1
        keep_latest(self._ever, key, count, _MAX_KEYS)
        return count, max(count, wider)


class _Window:
    """Counts of the latest so many keys."""

    __slots__ = ("_counts", "_keys", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._keys: deque[str] = deque()
        self._counts: Counter[str] = Counter()

    def add(self, key: str) -> int:
        self._keys.append(key)
        self._counts[key] += 1
        if len(self._keys) > self._size:
            oldest = self._keys.popleft()
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest]
        return self._counts[key]

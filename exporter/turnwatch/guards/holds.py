"""May a side effect be sent again that may already have happened?"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, final

import cachetools

from turnwatch.core.forking import fork_safe_lock

MAX_HOLDS: Final = 10_000
HOLD_SECONDS: Final = 86_400.0


@final
class Holds:
    """Calls that failed without a word on whether they were carried out. Each is held until the caller decides.

    Thread-safe. Past 10,000, and after a day, the oldest are forgotten.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._held: cachetools.TTLCache[Hashable, bool] = cachetools.TTLCache(MAX_HOLDS, HOLD_SECONDS, timer=clock)
        self._ever_held = False
        self._lock = fork_safe_lock()

    def hold(self, key: Hashable) -> None:
        """This call may have been carried out."""
        with self._lock:
            self._ever_held = True
            self._held[key] = True

    def holds(self, key: Hashable) -> bool:
        """Whether this call is held."""
        if not self._ever_held:
            return False
        with self._lock:
            return key in self._held

    def release(self, key: Hashable) -> None:
        """The caller has decided, or the call has worked."""
        if self._ever_held:
            with self._lock:
                self._held.pop(key, None)

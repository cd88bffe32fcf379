"""Is this tool down?"""

from __future__ import annotations

from typing import final

from turnwatch.core.forking import fork_safe_lock
from turnwatch.settings import Circuit


@final
class CircuitBreaker:
    """One tool's circuit: closed while it works, open when it does not, then tried with one call. Thread-safe.

    Args:
        settings: How many failures in a row open it, and for how long.
    """

    __slots__ = ("_lock", "_open_until", "_settings", "_trying", "failures")

    def __init__(self, settings: Circuit) -> None:
        self._settings = settings
        self.failures = 0
        self._open_until: float | None = None
        self._trying = False
        self._lock = fork_safe_lock()

    def admits(self, now: float) -> bool:
        """Whether a call may go through. After the open time one call at a time may, to see whether it is up."""
        if self._open_until is None:
            return True
        with self._lock:
            if self._open_until is None:
                return True
            if now < self._open_until or self._trying:
                return False
            self._trying = True
            return True

    def seconds_left(self, now: float) -> float:
        """Seconds until the next call may try it."""
        open_until = self._open_until  # read once: another thread may close it meanwhile
        return 0.0 if open_until is None else max(0.0, open_until - now)

    def worked(self) -> None:
        """An admitted call was answered, be it with an error about what it asked."""
        if not self.failures and self._open_until is None:
            return
        with self._lock:
            self.failures = 0
            self._open_until = None
            self._trying = False

    def failed(self, now: float) -> None:
        """An admitted call found the tool out of order."""
        with self._lock:
            self.failures += 1
            self._trying = False
            if self._settings.failures and self.failures >= self._settings.failures:
                self._open_until = now + self._settings.open_s

    def gave_up(self) -> None:
        """An admitted call was cancelled before the tool answered."""
        with self._lock:
            self._trying = False


def down_text(tool: str, failures: int, seconds: float) -> str:
    """What the model is told in place of a result."""
    return (
        f"{tool} is down: its last {failures} calls failed, and it is not called again for {seconds:.0f} s. "
        "Go on without it: use what you have and your other tools, and say plainly what you could not look up or do."
    )

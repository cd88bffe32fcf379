"""What happened in the demonstration, by whom and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened.

    Attributes:
        at: Seconds since the epoch.
        seconds: Seconds since the timeline's start.
        after_third_call: Seconds since the third identical call; None for what came before it.
        who: The agent or server that did it.
        what: What it did, in a sentence.
    """

    at: float
    seconds: float
    after_third_call: float | None
    who: str
    what: str


class Timeline:
    """Moments in the order they were told. Safe to use from several threads.

    Args:
        on_moment: Told of each moment as it comes, one at a time.
    """

    def __init__(self, on_moment: Callable[[Moment], None]) -> None:
        self.moments: list[Moment] = []
        self.third_call_at: float | None = None
        self._on_moment = on_moment
        self._start = time.time()
        self._lock = threading.Lock()

    def tell(self, who: str, what: str, *, at: float | None = None) -> None:
        """Add a moment.

        Args:
            who: The agent or server that did it.
            what: What it did, in a sentence.
            at: Seconds since the epoch; now when left out.
        """
        with self._lock:
            at = time.time() if at is None else at
            third = self.third_call_at
            after = at - third if third is not None and at >= third else None
            moment = Moment(at, at - self._start, after, who, what)
            self.moments.append(moment)
            self._on_moment(moment)

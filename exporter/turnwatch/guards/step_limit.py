"""Has the loop gone round too often?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from turnwatch.core.forking import fork_safe_lock
from turnwatch.errors import StepLimitExceeded


@final
class StepLimit:
    """A cap on the steps of one agent loop.

    ::

        for step in StepLimit(max_steps=10):    # 1 to 10; a further round raises StepLimitExceeded
            ...

    Thread-safe.

    Args:
        max_steps: Steps that may be taken.

    Raises:
        ValueError: ``max_steps`` is below 0.
    """

    def __init__(self, max_steps: int = 10) -> None:
        if max_steps < 0:
            raise ValueError("max_steps must be at least 0")
        self.max_steps = max_steps
        self.steps = 0
        self._lock = fork_safe_lock()

    def step(self) -> int:
        """Take one more step.

        Returns:
            Its number, from 1.

        Raises:
            StepLimitExceeded: All steps are taken. A refused step is not counted.
        """
        with self._lock:
            if self.steps >= self.max_steps:
                raise StepLimitExceeded(
                    f"{self.max_steps} steps are allowed, all are taken",
                    details={"limit": "max_iterations", "used": self.steps, "allowed": self.max_steps},
                )
            self.steps += 1
            return self.steps

    def __iter__(self) -> Iterator[int]:
        while True:
            yield self.step()

"""What a stopped turn leaves behind."""

from __future__ import annotations

import pickle
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, final

MAX_RESULTS: Final = 20


@dataclass(frozen=True, slots=True)
class PartialResults:
    """The work a turn had done when it was stopped; ``partial`` of the exception, unless the agent set its own.

    Attributes:
        results: (tool, what it returned) of the latest successful tool calls, oldest first, 20 at most. Not shown
            when this is printed.
        iterations, tool_calls: Calls so far.
        spend_usd: Dollars so far, child turns included.
        tokens: Tokens so far, child turns included.
    """

    results: tuple[tuple[str, Any], ...] = field(repr=False)
    iterations: int
    tool_calls: int
    spend_usd: float
    tokens: int

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the exception must arrive there, with those of the results that can."""
        results = tuple(pair for pair in self.results if _can_be_sent(pair))
        return PartialResults, (results, self.iterations, self.tool_calls, self.spend_usd, self.tokens)

    def __copy__(self) -> PartialResults:
        return self

    def __deepcopy__(self, memo: object) -> PartialResults:
        return self


@final
class LatestResults:
    """Keeps what the latest tool calls returned, by reference, until the turn is over."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: deque[tuple[str, Any]] = deque(maxlen=MAX_RESULTS)

    def add(self, tool: str, result: object) -> None:
        """Keep one more."""
        self._kept.append((tool, result))

    def all(self) -> tuple[tuple[str, Any], ...]:
        """What is kept, oldest first."""
        return tuple(self._kept)

    def forget(self) -> None:
        """Let go of everything."""
        self._kept.clear()


def _can_be_sent(result: object) -> bool:
    try:
        pickle.dumps(result)
    except Exception:
        return False
    return True

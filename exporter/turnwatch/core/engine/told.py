"""Which findings say something new?"""

from __future__ import annotations

from typing import Final

from turnwatch.core.engine.finding import Finding
from turnwatch.core.verdict import SEVERITY_RANK

_MAX_TOOLS: Final = 256


class Told:
    """What has been told of a turn.

    One standstill is one verdict of each severity: rules that see the same calls from another side wait until there is
    news. And a kind of loop on a tool is told once in each severity.
    """

    __slots__ = ("_kinds", "_rank", "_state")

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], int] = {}
        self._state = (-1, -1)
        self._rank = -1

    def is_news(self, found: Finding, tool: str, state: tuple[int, int]) -> bool:
        """Whether to tell of this finding; then it has been.

        Args:
            found: The finding.
            tool: The tool that it is about.
            state: How often state has changed, and how much news there has been.
        """
        rank = SEVERITY_RANK[found.severity]
        if state == self._state and self._rank >= rank:
            return False
        kind = (found.kind, tool)
        if self._kinds.get(kind, -1) >= rank or len(self._kinds) >= _MAX_TOOLS:
            return False
        self._kinds[kind] = rank
        self._state, self._rank = state, rank
        return True

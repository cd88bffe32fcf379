"""Did somebody outside speak between two turns of a conversation?"""

from __future__ import annotations

from typing import Final

_REMEMBERED: Final = 16


class RootTurns:
    """Whose the latest turns were that no other turn began. Bounded."""

    __slots__ = ("_agents",)

    def __init__(self) -> None:
        self._agents: list[str] = []

    def begin(self, agent: str) -> bool:
        """Note a turn; True where the one before was the same agent's, so that a user spoke between them."""
        agents = self._agents
        spoken = bool(agents) and agents[-1] == agent
        agents.append(agent)
        if len(agents) > _REMEMBERED:
            del agents[0]
        return spoken

    def adopted(self, agent: str) -> bool:
        """Note that the latest turn of this agent was a sub-agent's after all, and its caller's began behind it.

        Returns:
            Whether that shows only now that a user spoke.
        """
        agents = self._agents
        for at in range(len(agents) - 1, -1, -1):
            if agents[at] == agent:
                del agents[at]
                return 0 < at == len(agents) - 1 and agents[at - 1] == agents[at]
        return False

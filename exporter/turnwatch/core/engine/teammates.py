"""Does an agent look for itself at what another of its conversation has looked at?"""

from __future__ import annotations

from typing import Final

_MAX_CALLS: Final = 512


class Teammates(dict[int, str]):
    """Which agent of a conversation made each call first, and which others have made it since. Bounded."""

    __slots__ = ()

    def looks_for_itself(self, key: int, agent: str) -> bool:
        """Whether an agent makes a call for the first time that another one has made.

        Agents of a team are told little of what the others did, and each has to look: three that search once each are
        no loop. From its second time on the call is a repeat, for this agent as for the others.
        """
        if self.setdefault(key, agent) == agent:
            return False
        mine = hash((agent, key))
        if mine in self:
            return False
        self[mine] = agent
        while len(self) > _MAX_CALLS:
            del self[next(iter(self))]
        return True

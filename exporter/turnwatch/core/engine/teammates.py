"""Does an agent look for itself at what another of its conversation has looked at?"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MAX_CALLS: Final = 512


class Teammates:
    """Which agent of a conversation made each call first, and which others have made it since. Bounded."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: OrderedDict[int | tuple[str, int], str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._made)

    def looks_for_itself(self, key: int, agent: str) -> bool:
        """Whether an agent makes a call for the first time that another one has made.

        Agents of a team are told little of what the others did, and each has to look: three that search once each are
        no loop. From its second time on the call is a repeat, for this agent as for the others.
        """
        if self._made.get(key, agent) == agent:
            self._note(key, agent)
            return False
        if (agent, key) in self._made:
            return False
        self._note((agent, key), agent)
        return True

    def _note(self, call: int | tuple[str, int], agent: str) -> None:
        self._made[call] = agent
        if len(self._made) > _MAX_CALLS:
            self._made.popitem(last=False)

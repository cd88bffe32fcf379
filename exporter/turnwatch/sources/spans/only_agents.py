"""What a service's agent is called, where it has one only: its span comes last, when its calls have been counted."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from turnwatch.core.latest import keep_latest
from turnwatch.sources.spans.scope import Scope

# Of how many services the agent's name is remembered.
_SERVICES: Final = 1_000


class OnlyAgents:
    """Remembers each service's agent, for turns that are counted before their agent's span has come."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, str] = OrderedDict()  # by service; empty where it has several

    def of(self, scope: Scope) -> str:
        """A turn's agent; until that is known the service's only agent, or else an empty text."""
        return scope.agent or self._of.get(scope.service, "")

    def learn(self, scope: Scope) -> None:
        """Take note of a turn's agent."""
        if scope.agent and scope.service:
            is_only = self._of.get(scope.service, scope.agent) == scope.agent
            keep_latest(self._of, scope.service, scope.agent if is_only else "", _SERVICES)

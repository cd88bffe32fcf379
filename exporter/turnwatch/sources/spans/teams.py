"""Which turns are one conversation although their spans name none: those of several agents in one trace.

The agents of a team (a group chat, a swarm, a crew, a graph of agents) take turns, each a turn of its own, and most
frameworks give none of them a conversation id. What they share is the trace. Turns that are known to be below another
one when they begin are that one's business and make no team. The turns of one agent alone in a trace are no
conversation either: a job may go through any number of unrelated questions in one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final
from weakref import ref

from turnwatch.core.latest import keep_latest
from turnwatch.core.turn import TurnState
from turnwatch.sources.spans.scope import Scope

_TRACES: Final = 2_048


class Teams:
    """Remembers the agents of each trace. Bounded; the traces that were silent longest are forgotten."""

    def __init__(self) -> None:
        # A trace's only agent and its latest turn, as long as that is kept elsewhere; None once there are several.
        self._traces: OrderedDict[int, tuple[str, ref[TurnState]] | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._traces)

    def conversation_of(self, scope: Scope, parent: TurnState | None, own: TurnState | None = None) -> str | None:
        """The conversation of a turn, which may be about to be opened: by its spans, or its team's."""
        if scope.conversation is not None or parent is not None:
            return scope.conversation
        if not scope.agent or scope.trace_id not in self._traces:
            return None
        conversation_id = f"{scope.trace_id:032x}"
        only = self._traces[scope.trace_id]
        if only is not None:
            agent, turn = only[0], only[1]()
            if agent == scope.agent or (turn is not None and turn is own):
                return None
            if turn is not None:
                turn.join_conversation(conversation_id)
            self._traces[scope.trace_id] = None
        self._traces.move_to_end(scope.trace_id)
        return conversation_id

    def note(self, scope: Scope, turn: TurnState) -> None:
        """Note a turn that has been opened."""
        if scope.agent and scope.trace_id and turn.conversation_id is None and turn.parent is None:
            turn.agent = scope.agent
            keep_latest(self._traces, scope.trace_id, (scope.agent, ref(turn)), _TRACES)

    def join(self, scope: Scope, turn: TurnState) -> None:
        """Take note of what an agent's own span says of its turn, which was opened before that came."""
        conversation_id = self.conversation_of(scope, turn.parent, turn)
        if conversation_id is None:
            self.note(scope, turn)
        else:
            turn.agent = scope.agent or turn.agent
            turn.join_conversation(conversation_id)

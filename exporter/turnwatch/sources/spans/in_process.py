"""Turn assembly where spans can be seen while they are open: agents are known before their calls end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.dialect import Dialect, dialect_of
from turnwatch.sources.spans.graphs import graph_name
from turnwatch.sources.spans.hints import give_hints, own_name, spoken_name
from turnwatch.sources.spans.placing import CallPlace
from turnwatch.sources.spans.roles import is_of_interest, role_of, says_its_role
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.span import SpanData


@dataclass(slots=True)
class Counted:
    """Where a span's call counted.

    Attributes:
        turn: The turn.
        span_id: The span that bounds it, as far as that is known.
    """

    turn: TurnState
    span_id: int


class InProcessAssembler(Assembler):
    """Builds turns out of ended spans, and looks at the open ones above them.

    What an open span already says of itself places its children at once; where it says nothing yet, they wait for
    its end as everywhere else.

    Attributes:
        passed: Open spans of the program's own inside an agent's, under which calls count in that agent.
    """

    def __init__(self, watch: Watch, **options: Any) -> None:
        super().__init__(watch, **options)
        self.passed: set[int] = set()

    def adopt(self, span_id: int, trace_id: int, turn: TurnState, now: float) -> None:
        """Have this span, and what hangs under it, count in a turn that somebody else opened and ends."""
        scope = Scope(span_id, trace_id, now)
        scope.turn = turn
        scope.agent = turn.agent
        scope.is_agent = scope.is_adopted = True
        self._above.adopted[span_id] = scope
        self._turns.gather_trace(scope)

    def is_adopted(self, span_id: int) -> bool:
        """Whether this span counts in a turn that somebody else opened."""
        return span_id in self._above.adopted

    def disown(self, span_id: int) -> None:
        """Forget an adoption: the span has ended."""
        scope = self._above.adopted.pop(span_id, None)
        if scope is not None:
            self._turns.ungather_trace(scope)
            scope.tells_results = False  # no request comes any more
            self._outcomes.end_all(scope)

    def end_waits(self, turn: TurnState) -> None:
        """Count the ends of all calls of an adopted turn: it is about to end."""
        self._outcomes.end_waits(turn)

    @property
    def holds_calls(self) -> bool:
        """Whether ends of calls are not counted yet."""
        return not self._outcomes.are_none

    def flush(self) -> None:
        """Count everything that waits and end every turn that is not adopted: nothing more will come."""
        super().flush()
        self._outcomes.end_waits()

    def announce(self, span: SpanData, now: float) -> bool:
        """Take note of a span that is still open.

        Returns:
            Whether it is known where its children count.
        """
        if self._places.has_come(span.span_id):
            return True
        adopted = self._above.adopted.get(span.span_id)
        dialect = dialect_of(span)
        if not is_of_interest(span.scope, span.name, span.attributes):
            return self._announce_own(span)
        if not says_its_role(span, dialect):
            return False
        role, graph = role_of(span, dialect), graph_name(span)
        if graph or role == "agent":
            name = graph or own_name(span, dialect)
            if not name and adopted is not None and adopted.turn is not None:
                self._places.came(span.span_id, adopted)
                self._places.announced[span.span_id] = None
                return True
            return self._announce_agent(span, dialect, name, now)
        if role in ("step", "container") and (span.parent_id or adopted is not None):
            self._alias(span, now)
            return True
        return False

    def _announce_own(self, span: SpanData) -> bool:
        """A span of the program's own says nothing of agents: inside a known agent it is a step of it."""
        above = self._above.known(span)
        if above is None or not above.is_agent:
            return False
        self._pass_on(span)
        self.passed.add(span.span_id)
        return True

    def _pass_on(self, span: SpanData) -> Scope | None:
        """What hangs under this span counts where the span does: in the turn that adopted it, or under its parent."""
        adopted = self._above.adopted.get(span.span_id)
        self._places.came(span.span_id, adopted if adopted is not None else span.parent_id)
        return adopted

    def _take(self, span: SpanData, now: float) -> None:
        if span.span_id in self.passed:  # it says only now that it is more than the program's own
            self.passed.discard(span.span_id)
            self._places.leave(span.span_id)
        super()._take(span, now)

    def _announce_agent(self, span: SpanData, dialect: Dialect, name: str, now: float) -> bool:
        if not name and dialect.agent_in_span_name and self._places.has_come(span.parent_id):
            name = span.name  # the outermost is called after the workflow, and has nothing above it
        if not name:  # many say it only at their end
            self._call_after(span, dialect)
            return False
        above = self._above.known(span)
        if dialect.agent_per_step or (above is not None and above.is_agent and above.agent == name):
            if not span.parent_id and span.span_id not in self._above.adopted:
                return False
            self._alias(span, now)
            return True
        scope = self._places.take(span.span_id) or Scope(span.span_id, span.trace_id, now)
        scope.agent = name
        scope.is_agent = scope.saw_agent = True
        scope.above = above
        give_hints(scope, span, dialect)
        self._places.came(span.span_id, scope)
        self._places.announced[span.span_id] = None
        return True

    def _call_after(self, span: SpanData, dialect: Dialect) -> None:
        """Calls that wait for an agent without a name are called after its span, should they wait no longer."""
        waiting = self._places.of(span.span_id)
        if isinstance(waiting, Scope) and waiting.turn is None:
            waiting.service = spoken_name(span.name, dialect)

    def _alias(self, span: SpanData, now: float) -> None:
        below = self._places.take(span.span_id)
        adopted = self._pass_on(span)
        self._places.announced[span.span_id] = None
        if below is not None:
            above = adopted or self._above.of(span, now, below)
            if above is not None:
                self._turns.join(below, above, now)

    def counted_in(self, span: SpanData) -> Counted | None:
        """The turn in which an ended span's call counted, if it counted in one that is open."""
        place = self._places.of(span.span_id)
        scope = place.above.found() if isinstance(place, CallPlace) else place
        if not isinstance(scope, Scope) or scope.turn is None:
            return None
        return Counted(scope.turn, scope.key)

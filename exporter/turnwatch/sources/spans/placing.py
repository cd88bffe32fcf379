"""Where a span belongs: which scope the calls under a span that has come, or is still to come, count in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import KeysView
from typing import Final

from turnwatch.sources.spans.arguments import digests_of, may_have_digests
from turnwatch.sources.spans.facts import Fact, ToolFact, is_same_tool_name
from turnwatch.sources.spans.scope import Scope

# Which spans have been seen lately, for children that arrive after their parents.
_REMEMBERED_SPANS: Final = 65_536
_MAX_HOPS: Final = 64
_LOOKED_AT: Final = 64


class CallPlace:
    """Where the children of a call's span belong that arrive after it.

    Attributes:
        above: The scope in which it counts.
        tool: The tool; None for a model call.
        agent: What to call a sub-agent that it runs.
        scope: Who wrote its span.
        span_id: Its span.
        given: What stands for the tool's arguments; None where nothing does.
        parent_id: The span that this one lies in, which may stand for the same call; 0 where it does not matter.
        within: The sub-agent's turn that hangs under it, if there is one.
    """

    __slots__ = ("above", "agent", "given", "parent_id", "scope", "span_id", "tool", "within")

    def __init__(self, fact: Fact, above: Scope, agent: str = "", parent_id: int = 0) -> None:
        self.above = above
        self.tool: str | None = None
        self.given: bytes | None = None
        if type(fact) is ToolFact:
            self.learn(fact)
        self.agent = agent
        self.scope = fact.scope
        self.span_id = fact.span_id
        self.parent_id = parent_id
        self.within: Scope | None = None

    def learn(self, fact: ToolFact) -> None:
        """Note what is called, and with what."""
        self.tool = fact.call.tool
        self.given = digests_of(fact.call.args)

    def is_told_by(self, inner: ToolFact) -> bool:
        """Whether a span inside stands for the same call: another instrumentation's, or that of the tool's function.

        No tool calls itself with what it was given. The function may be given more than the model gave, by default.
        """
        if self.tool is None or not is_same_tool_name(inner.call.tool, self.tool):
            return False
        return inner.scope != self.scope or may_have_digests(self.given, digests_of(inner.call.args))


Place = Scope | CallPlace | int  # an int: where the children of that span belong, these belong too


class Places:
    """Scopes by the span they hang under: one that is still to come, or one that came lately. Bounded.

    Args:
        bound: How many spans that are still to come may be waited for.

    Attributes:
        announced: Spans that came before they ended (see in_process). As long as the turns are open in which their
            children count they are not forgotten, however many others come meanwhile.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._waiting: dict[int, Scope] = {}
        self._came: OrderedDict[int, Place] = OrderedDict()
        self.announced: dict[int, None] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._waiting.clear()
        self._came.clear()
        self.announced.clear()

    @property
    def awaited(self) -> KeysView[int]:
        """The spans, still to come, under which calls hang. The view stays right as they come."""
        return self._waiting.keys()

    def has_come(self, span_id: int) -> bool:
        """Whether this span came lately."""
        return span_id in self._came

    def came(self, span_id: int, place: Place) -> None:
        """Remember where the children of a span belong that come after it."""
        came = self._came
        came[span_id] = place
        if len(came) > _REMEMBERED_SPANS:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        came = self._came
        for _ in range(_LOOKED_AT):
            oldest = next(iter(came))
            place = self.of(oldest) if oldest in self.announced else None
            if isinstance(place, Scope) and not place.closed:
                came.move_to_end(oldest)
                continue
            self.announced.pop(oldest, None)
            del came[oldest]
            if len(came) <= _REMEMBERED_SPANS:
                break

    def leave(self, span_id: int) -> None:
        """Undo :meth:`came`: what this span is shows only now."""
        self._came.pop(span_id, None)

    def take(self, span_id: int) -> Scope | None:
        """The scope of the calls that waited for this span."""
        scope = self._waiting.pop(span_id, None)
        return None if scope is None else scope.found()

    def put_back(self, span_id: int, scope: Scope) -> None:
        """Undo :meth:`take`."""
        self._waiting[span_id] = scope

    def wait_for(self, span_id: int, trace_id: int, now: float) -> Scope:
        """A new scope for calls under a span that is still to come."""
        scope = self._waiting[span_id] = Scope(span_id, trace_id, now)
        return scope

    def over_bound(self) -> Scope | None:
        """The oldest scope when more spans are waited for than the bound allows; it is waited for no more."""
        if len(self._waiting) <= self._bound:
            return None
        return self._waiting.pop(next(iter(self._waiting))).found()

    def forget(self, scope: Scope) -> None:
        """Wait no more for the span of a turn that is closed."""
        waiting = self._waiting.get(scope.key)
        if waiting is not None and waiting.found() is scope:
            del self._waiting[scope.key]

    def waited_for(self) -> list[Scope]:
        """The scopes under all spans that are still to come."""
        return [scope.found() for scope in self._waiting.values()]

    def forget_older(self, limit: float, now: float) -> list[Scope]:
        """Wait no more for spans that nothing open depends on. A few at a time.

        Returns:
            The scopes that waited for them, in which there are no calls.
        """
        forgotten: list[Scope] = []
        for _ in range(_LOOKED_AT):
            key = next(iter(self._waiting), None)
            if key is None or self._waiting[key].since > limit:
                break
            scope = self._waiting.pop(key)
            found = scope.found()
            if found.closed:
                continue
            if found.is_empty:
                forgotten.append(found)
            else:
                scope.since = now
                self._waiting[key] = scope
        return forgotten

    def of(self, span_id: int) -> Place | None:
        """Where the children of this span belong: a scope or a call; a number or None where nobody knows yet."""
        waiting = self._waiting.get(span_id)
        if waiting is not None:
            return waiting if waiting.into is None else waiting.found()
        place = self._came.get(span_id)
        for _ in range(_MAX_HOPS):
            if type(place) is not int or not place:
                break
            waiting = self._waiting.get(place)
            if waiting is not None:
                return waiting.found()
            above = self._came.get(place)
            if above is None:
                break
            place = above
        return place.found() if isinstance(place, Scope) else place

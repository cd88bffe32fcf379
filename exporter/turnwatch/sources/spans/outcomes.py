"""Tool calls of whose end their own span does not tell all: another is yet to say how they ended, or with what.

The tool spans of some frameworks never say that a call failed; only a span inside does, of another instrumentation or
of an MCP server, whose process sends its spans some seconds later. What has been counted and judged cannot be taken
back, so the end of such a call waits for that span, and so do the ends of its turn's calls behind it. Which calls wait:
those that went through an MCP client, until one of the tool's has waited in vain, and those of tools of whose calls a
span inside has told before.

Other tool spans leave the result out, and the model's next request has it. Calls of these wait for that request.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, Final, final

from turnwatch.core.latest import keep_latest
from turnwatch.core.turn import TurnState
from turnwatch.sources.spans.answers import results_of
from turnwatch.sources.spans.facts import ToolFact
from turnwatch.sources.spans.logs import Kept
from turnwatch.sources.spans.same_call import ToldTool, is_same_tool_call
from turnwatch.sources.spans.scope import Scope

_TOOLS: Final = 10_000
# Calls that wait keep their arguments. Past this much the oldest wait no longer.
_WAITING_BYTES: Final = 16_777_216


@final
class HeldCall:
    """A call that has begun, and whose end is counted and judged when it is this one's turn.

    Attributes:
        waits: For a span inside it.
        lacks_result: It waits for the model's next request.
    """

    __slots__ = ("fact", "lacks_result", "scope", "turn", "waits")

    def __init__(self, fact: ToolFact, scope: Scope, turn: TurnState, *, waits: bool, lacks_result: bool) -> None:
        self.fact = fact
        self.scope = scope
        self.turn = turn
        self.waits = waits
        self.lacks_result = lacks_result

    @property
    def is_open(self) -> bool:
        """Whether it waits for anything."""
        return self.waits or self.lacks_result


class OpenOutcomes:
    """Calls that wait for spans inside them, or for the model's next request.

    Args:
        seconds: How long they wait for spans at most; 0 where no span comes later than the one it lies in.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._by_span: OrderedDict[int, HeldCall] = OrderedDict()
        self._new: list[HeldCall] = []
        self._since: deque[tuple[float, HeldCall]] = deque()
        self._bytes = 0
        # By who wrote the spans and tool: whether a span inside tells how its calls end, as soon as that shows.
        self._tells_inside: OrderedDict[tuple[str, str], bool] = OrderedDict()

    def holds(self, scope: Scope, turn: TurnState, fact: ToolFact) -> bool:
        """Whether the end of a call that has begun is not to be counted yet. Then it will be."""
        waits = bool(self._seconds) and self._may_fail_inside(fact)
        lacks_result = fact.call.result is None and scope.tells_results
        if scope.unended is None:
            if not waits and not lacks_result:
                return False
            scope.unended = deque()
        held = HeldCall(fact, scope, turn, waits=waits, lacks_result=lacks_result)
        scope.unended.append(held)
        if held.is_open:
            self._by_span[fact.span_id] = held
            self._bytes += fact.weight
            if waits:
                self._new.append(held)
            while self._bytes > _WAITING_BYTES and self._by_span:
                self._end_wait(next(iter(self._by_span.values())))
        return True

    def _may_fail_inside(self, fact: ToolFact) -> bool:
        if fact.awaits is False:
            self.learn(fact.scope, fact.call.tool, tells=True)
            return False
        return fact.call.outcome == "ok" and self._tells_inside.get((fact.scope, fact.call.tool), fact.awaits) is True

    def hear_request(self, scope: Scope, messages: Mapping[str, Any], logged: Kept[str, Any]) -> None:
        """Take from a model's next request what came of the calls of a turn that wait for it."""
        waiting = [held for held in scope.unended or () if held.lacks_result]
        if not waiting:
            return
        results = results_of([held.fact.call for held in waiting], messages, logged)
        scope.tells_results = bool(results)
        for number, held in enumerate(waiting):
            held.lacks_result = False
            result = results.get(number)
            if result is not None:
                held.fact.call.result = result.evidence
                if result.failed:
                    held.fact.fail(None)
            self._go_on(held)

    def of(self, span_id: int) -> ToolFact | None:
        """The call of a span, if it waits."""
        held = self._by_span.get(span_id)
        return None if held is None else held.fact

    def told(self, fact: ToolFact) -> None:
        """A span inside a call has told of it as well, and if that makes its outcome final it waits no longer."""
        if fact.awaits is not False:
            return
        self.learn(fact.scope, fact.call.tool, tells=True)
        held = self._by_span.get(fact.span_id)
        if held is not None:
            held.waits = False
            self._go_on(held)

    def told_beside(self, scope: Scope, fact: ToolFact) -> None:
        """A span of another instrumentation, not inside the call's own, has told of a call of this turn as well."""
        for held in (scope.unended or ()) if fact.call.outcome == "error" else ():
            if held.waits and is_same_tool_call(ToldTool.by(held.fact), fact):
                held.fact.fail(fact.call.error_type)
                self.told(held.fact)
                return

    def learn(self, scope: str, tool: str, *, tells: bool) -> None:
        """Note whether spans inside this tool's calls tell how those ended, where this scope wrote the calls' own."""
        keep_latest(self._tells_inside, (scope, tool), tells, _TOOLS)

    def tick(self, now: float) -> None:
        """Let time pass."""
        while self._since and self._since[0][0] <= now - self._seconds:
            _, held = self._since.popleft()
            if held.waits:
                scope, tool = held.fact.scope, held.fact.call.tool
                if (scope, tool) not in self._tells_inside:
                    self.learn(scope, tool, tells=False)
                held.waits = False
                self._go_on(held)
        self._since.extend((now, held) for held in self._new if held.waits)
        self._new.clear()

    def end_all(self, scope: Scope) -> None:
        """Count the ends of all calls of a turn: it is over."""
        while scope.unended:
            self._end(scope.unended.popleft())
        scope.unended = None

    @property
    def are_none(self) -> bool:
        """Whether no call waits."""
        return not self._by_span

    def end_waits(self, turn: TurnState | None = None) -> None:
        """Have the calls of a turn that somebody else opened and ends, or all calls, wait no longer."""
        for held in list(self._by_span.values()):
            if turn is None or held.turn is turn:
                self._end_wait(held)

    def _go_on(self, held: HeldCall) -> None:
        """One thing that a call waited for has come, or comes no more."""
        if not held.is_open:
            self._end_wait(held)

    def _end_wait(self, held: HeldCall) -> None:
        """Count the end of a call, as soon as those before it in its turn have ended."""
        self._wait_no_more(held)
        queue = held.scope.unended
        while queue and not queue[0].is_open:
            self._end(queue.popleft())
        if not queue:
            held.scope.unended = None

    def _end(self, held: HeldCall) -> None:
        self._wait_no_more(held)
        held.turn.end_call(held.fact.call)

    def _wait_no_more(self, held: HeldCall) -> None:
        held.waits = held.lacks_result = False
        if self._by_span.get(held.fact.span_id) is held:
            del self._by_span[held.fact.span_id]
            self._bytes -= held.fact.weight

"""From the calls of one scope to its turn's counts: each call once, in order, with what is known of it."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from turnwatch.core.events import MISSING, ModelCall, ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.spans.answers import calls_made
from turnwatch.sources.spans.asked_for import asked_before_now, fill_arguments
from turnwatch.sources.spans.complaints import Complaints
from turnwatch.sources.spans.dialect import Dialect
from turnwatch.sources.spans.facts import Fact, ModelFact, ToolFact
from turnwatch.sources.spans.logs import LogFacts
from turnwatch.sources.spans.messages import (
    asked_of,
    carries_reply,
    carries_request,
    leaves_out_arguments,
    said_in,
    wants_tools,
)
from turnwatch.sources.spans.only_agents import OnlyAgents
from turnwatch.sources.spans.outcomes import OpenOutcomes
from turnwatch.sources.spans.questions import Questions
from turnwatch.sources.spans.rounds import note_start, round_of
from turnwatch.sources.spans.same_call import ToldModel, ToldTool, is_same_model_call, is_same_tool_call, merged
from turnwatch.sources.spans.scope import SEVERAL, Scope
from turnwatch.sources.spans.seen_by_mcp import calls_of
from turnwatch.sources.spans.span import MILLISECOND_NS, NO_ATTRIBUTES
from turnwatch.sources.spans.teams import Teams

_NS: Final = 1e-9
BY_START: Final = attrgetter("start_ns")
# How many ids and calls are remembered for telling second spans of a call from second calls.
_REMEMBERED: Final = 64
_RECENT: Final = 8
_NEVER_NS: Final = 2**63
# How many model calls wait for second spans of themselves; those come within a batch.
_HELD_MODELS: Final = 3


class Recorder:
    """Writes facts into turns.

    Args:
        watch: Opens the turns.
        logs: What log events told beside the spans.
        outcomes: Holds the ends of calls that spans inside them may tell more of.

    Attributes:
        teams: Which turns are one conversation although their spans name none.
    """

    def __init__(self, watch: Watch, logs: LogFacts, outcomes: OpenOutcomes) -> None:
        self._watch = watch
        self._outcomes = outcomes
        self._elsewhere = Watch(watch.settings, clock=watch.clock, prices=watch.prices)
        self._logs = logs
        self._complaints = Complaints()
        self._agents = OnlyAgents()
        self._questions = Questions()
        self.teams = Teams()

    def open(self, scope: Scope, parent: TurnState | None) -> None:
        """Open the scope's turn and count what waited for it."""
        pending, scope.pending = scope.pending, None
        waiting: list[Fact] = sorted(pending, key=BY_START) if pending else []
        first = waiting[0] if waiting else None
        started_ns = first.start_ns if first is not None else scope.ended_ns
        # A turn all of whose calls somebody nearer to the agent counts is that one's turn as well.
        elsewhere = bool(waiting) and all(self._is_counted(scope, fact) for fact in waiting)
        turn = self._open_turn(scope, parent, started_ns, self._elsewhere if elsewhere else self._watch)
        dialect = first.dialect if first is not None else scope.agent_dialect
        if dialect is not None:
            turn.source = dialect.name
        told_ns = max([scope.ended_ns, *(fact.end_ns for fact in waiting)])
        if told_ns:
            turn.told_until(told_ns * _NS)
        scope.turn = turn
        for fact in waiting:
            self.record(scope, fact)

    def _open_turn(self, scope: Scope, parent: TurnState | None, started_ns: int, watch: Watch) -> TurnState:
        turn = watch.open_turn(
            self._agents.of(scope) or scope.service,
            conversation_id=self.teams.conversation_of(scope, parent),
            parent=parent,
            turn_id=f"{scope.trace_id:032x}-{scope.key:016x}" if scope.key else f"{scope.trace_id:032x}",
            at=started_ns * _NS if started_ns else None,
        )
        self.teams.note(scope, turn)
        return turn

    def _is_counted(self, scope: Scope, fact: Fact) -> bool:
        """Whether somebody else counts this call: its span says so, or a hook has counted the same call."""
        counted = self._watch.counted_calls
        if counted and not fact.counted:
            trace_id = f"{scope.trace_id:032x}"
            if isinstance(fact, ModelFact):
                fact.counted = counted.has_model(fact.call, trace_id)
            else:
                call = fact.call
                if call.input_hash is None and call.args is not MISSING:
                    call.input_hash = self._watch.hash(call.tool, call.args)
                fact.counted = counted.has_tool(call, trace_id)
        return fact.counted

    def _begin_here(self, scope: Scope, turn: TurnState, fact: Fact) -> TurnState:
        """The turn that a call counts in, where it seemed to be counted elsewhere and is not."""
        here = scope.turn = self._open_turn(scope, turn.parent, fact.start_ns, self._watch)
        here.source = turn.source
        return here

    def record(self, scope: Scope, fact: Fact) -> None:
        """Count one call of an open turn, unless another span told of it already."""
        if fact.end_ns > scope.last_ns:
            scope.last_ns = fact.end_ns
        if type(fact) is ModelFact:
            self._hold_model(scope, fact)
        elif type(fact) is ToolFact:
            if scope.held:
                self.count_held(scope, before_ns=fact.start_ns)
            self._record_tool(scope, fact)

    # Model calls

    def _hold_model(self, scope: Scope, fact: ModelFact) -> None:
        held = scope.held
        if held is None:
            held = scope.held = []
        if scope.may_be_told_twice(fact):
            for number, other in enumerate(held):
                if is_same_model_call(other, fact):
                    held[number] = merged(other, fact)
                    return
            for told in scope.recent_models:
                if is_same_model_call(told, fact):
                    self._hear_late(scope, told, fact)
                    return
        held.append(fact)
        if len(held) > 1 and held[-2].start_ns > fact.start_ns:
            held.sort(key=lambda one: one.start_ns)
        if len(held) > _HELD_MODELS:
            self._count_model(scope, held.pop(0))

    def count_held(self, scope: Scope, before_ns: int | None = None) -> None:
        """Count the model calls held back now, or those that began before a time."""
        held = scope.held
        while held and (before_ns is None or held[0].start_ns <= before_ns):
            self._count_model(scope, held.pop(0))
        if not held:
            scope.held = None

    def _count_model(self, scope: Scope, fact: ModelFact) -> None:
        """Count a model call that was held back, maybe at the end of its turn, which must not fail with it."""
        try:
            self._count_model_and_reply(scope, fact)
        except Exception:
            self._watch.internal_error("reading a model call")

    def _count_model_and_reply(self, scope: Scope, fact: ModelFact) -> None:
        turn = scope.turn
        if turn is None:
            return
        if scope.unended:
            self._outcomes.hear_request(scope, fact.attributes, self._logs.results)
        if scope.asked:
            self._count_asked(scope, answers=fact)
        if scope.unread_reply is not None:
            scope.asked = asked_before_now(scope, fact)
            self._count_asked(scope, answers=fact)
            self._say_unread(scope)
        if not self._is_counted(scope, fact):
            if turn.watch is self._elsewhere:
                turn = self._begin_here(scope, turn, fact)
            if turn.conversation_id is not None and fact.attributes:
                said = said_in(fact.attributes)
                if said and not self._questions.is_new(turn.conversation_id, fact.attributes):
                    fact.call.text = Evidence.of(said)
            turn.begin_model(at=fact.call.started)
            turn.end_model(fact.call)
            if fact.call.usage is None and fact.call.outcome != "error":
                scope.without_usage = (fact.dialect, fact.scope)
        scope.saw_usage = scope.saw_usage or fact.call.usage is not None
        scope.model_name = scope.model_name or fact.call.model
        # The reply's tool calls: what has no span of its own is counted from here, and arguments that a
        # span lacks may stand here.
        attributes = fact.attributes
        by_spans = scope.has_tools or (scope.agent_dialect is not None and scope.agent_dialect.tool_calls == "spans")
        if not scope.recent_models:
            scope.tells_results = carries_request(attributes)
        scope.reads_replies = fact.dialect.tool_calls == "either" and not by_spans and not fact.counted
        lacks_arguments = scope.lacks_arguments or leaves_out_arguments(attributes)
        if scope.reads_replies or lacks_arguments or not turn.tool_calls:
            logged = self._logs.asked.pop(fact.span_id, None) if self._logs.heard else None
            scope.asked = asked_of(attributes) or logged
        if scope.reads_replies and not scope.asked:
            wants = wants_tools(attributes)
            is_silent = wants is None and fact.call.outcome != "error"
            if wants or (is_silent and not carries_reply(attributes)):
                scope.unread_reply = fact.dialect
                scope.surely_unread = wants is True
        scope.recent_models = (*scope.recent_models[1 - _RECENT :], ToldModel(fact))
        if fact.dialect.arguments_in_logs:
            note_start(scope, fact)

    def _say_unread(self, scope: Scope) -> None:
        """A reply asked for tools, and nothing says for which: the turn cannot be judged, and says so."""
        dialect, scope.unread_reply = scope.unread_reply, None
        turn = scope.turn
        if dialect is None or turn is None or scope.has_tools:
            return
        turn.missing_arguments += 1
        self._watch.count("turnwatch_fingerprint_missing_total", dialect.name)
        written_by = scope.models_by if scope.models_by is not SEVERAL else None
        self._complain_of_arguments(scope, dialect, written_by or "")

    def _complain_of_arguments(self, scope: Scope, dialect: Dialect, written_by: str) -> None:
        self._complaints.lacks_arguments(dialect, written_by, scope.service, self._agents.of(scope))

    def _count_asked(self, scope: Scope, answers: ModelFact | None) -> None:
        """Count the tool calls of the last reply, where they were made without a span."""
        asked, scope.asked = scope.asked, None
        turn = scope.turn
        if not asked or turn is None or scope.has_tools or not scope.reads_replies:
            return
        scope.seen_by_mcp = None
        scope.unread_reply = None
        started = scope.last_ns * _NS if scope.last_ns else None
        calls = []
        attributes = answers.attributes if answers is not None else NO_ATTRIBUTES
        # A request that was sent before this reply had come, and whose span comes late, knows nothing of its calls.
        is_next = answers is not None and answers.start_ns + MILLISECOND_NS > scope.recent_models[-1].end_ns
        known = (scope.call_ids or ()) if is_next else None
        for request, result in calls_made(asked, attributes, self._logs.results, known):
            call = ToolCall(
                request.tool,
                request.arguments,
                call_id=request.call_id or None,
                round=turn.iterations or None,
                started=started,
                ended=answers.call.started if answers is not None else started,
                result=result.evidence if result is not None else None,
                outcome="error" if result is not None and result.failed else "ok",
            )
            turn.begin_call(call)
            calls.append(call)
            if call.call_id and answers is not None:  # its own span may yet come, behind those of later calls
                asked_ns = scope.recent_models[-1].end_ns
                until_ns = answers.start_ns if answers.start_ns > asked_ns else _NEVER_NS
                self._remember(scope, ToldTool(call.tool, call.call_id, "", asked_ns, until_ns))
        for call in calls:
            turn.end_call(call)

    @staticmethod
    def _hear_late(scope: Scope, told: ToldModel, second: ModelFact) -> None:
        """Take the tool calls of a reply from a second span that came after the model call was counted."""
        if not scope.asked and scope.recent_models[-1] is told:
            scope.asked = asked_of(second.attributes) or None
            if scope.asked:
                scope.unread_reply = None

    def hear_reply(self, scope: Scope, span_id: int) -> None:
        """Take the tool calls of a reply from a log event that came after the model call was counted."""
        is_latest = bool(scope.recent_models) and scope.recent_models[-1].span_id == span_id
        if is_latest and scope.reads_replies and scope.asked is None:
            scope.asked = self._logs.asked.pop(span_id, None)
            scope.unread_reply = None

    # Tool calls

    def _record_tool(self, scope: Scope, fact: ToolFact) -> None:
        turn = scope.turn
        if turn is None:
            return
        scope.has_tools = True
        scope.seen_by_mcp = None
        call = fact.call
        if self._is_told_of(scope, fact):
            self._outcomes.told_beside(scope, fact)
            return
        if self._is_counted(scope, fact):
            return
        if turn.watch is self._elsewhere:
            turn = self._begin_here(scope, turn, fact)
        if call.args is MISSING and call.input_hash is None:
            scope.lacks_arguments = True
            fill_arguments(call, scope.asked or [])
        call.round = round_of(scope, fact, turn.iterations)
        if call.args is MISSING and call.input_hash is None:
            self._complain_of_arguments(scope, fact.dialect, fact.scope)
        turn.begin_call(call)
        if not self._outcomes.holds(scope, turn, fact):
            turn.end_call(call)

    def _is_told_of(self, scope: Scope, fact: ToolFact) -> bool:
        call_id = fact.call.call_id
        told = ToldTool.by(fact)
        if call_id:
            known = scope.call_ids.get(call_id) if scope.call_ids is not None else None
            if known is not None and is_same_tool_call(known, fact):
                return True
            self._remember(scope, told)
        if scope.tools_by != fact.scope:
            scope.tools_by = fact.scope if scope.tools_by is None else SEVERAL
        for other in scope.recent_tools if scope.tools_by is SEVERAL else ():
            if other.scope != fact.scope and is_same_tool_call(other, fact):
                return True
        scope.recent_tools = (*scope.recent_tools[1 - _RECENT :], told)
        return False

    @staticmethod
    def _remember(scope: Scope, told: ToldTool) -> None:
        if scope.call_ids is None:
            scope.call_ids = {}
        if told.call_id:
            scope.call_ids[told.call_id] = told
        if len(scope.call_ids) > _REMEMBERED:
            del scope.call_ids[next(iter(scope.call_ids))]

    # The end

    def close(self, scope: Scope) -> None:
        """Count what is left and end the turn."""
        turn = scope.turn
        if turn is None:
            return
        self.count_held(scope)
        self._outcomes.end_all(scope)
        dialect = scope.agent_dialect
        if dialect is None or dialect.tool_calls == "either":
            self._count_asked(scope, answers=None)
            if scope.surely_unread:
                self._say_unread(scope)
        elif dialect.tool_calls == "never" and not turn.tool_calls and not turn.iterations:
            scope.unread_reply = dialect
            self._say_unread(scope)
        self.count_seen_by_mcp(scope)
        is_own_sum = not scope.child_turns or (dialect is not None and dialect.sums_leave_out_sub_agents)
        if not scope.saw_usage and scope.agent_usage is not None and is_own_sum:
            turn.end_model(ModelCall(scope.model_name, usage=scope.agent_usage, ended=scope.last_ns * _NS or None))
        elif scope.without_usage is not None and not scope.saw_usage:
            self._complaints.lacks_usage(*scope.without_usage, scope.service, self._agents.of(scope))
        if scope.agent:
            turn.agent = scope.agent
            self._agents.learn(scope)
        if scope.conversation is not None:  # the span that says it may have come after the turn was begun
            turn.join_conversation(scope.conversation)
        ended_ns = scope.ended_ns or scope.last_ns
        turn.end(scope.stop_reason or "unknown", at=ended_ns * _NS if ended_ns else None)

    def count_seen_by_mcp(self, scope: Scope) -> None:
        """Count the calls that only MCP saw: no other span stands for them."""
        facts, scope.seen_by_mcp = scope.seen_by_mcp, None
        turn = scope.turn
        if not facts or turn is None or scope.has_tools or (scope.asked and scope.reads_replies):
            return
        for fact in calls_of(facts):
            scope.last_ns = max(scope.last_ns, fact.end_ns)
            if not turn.iterations:
                fact.call.round = round_of(scope, fact, 0)
            self._complain_of_arguments(scope, fact.dialect, fact.scope)
            turn.begin_call(fact.call)
            turn.end_call(fact.call)

"""Which spans stand for one call, and what do they tell together?"""

from __future__ import annotations

from typing import final

from turnwatch.sources.spans.facts import Fact, ModelFact, ToolFact, is_same_tool_name
from turnwatch.sources.spans.span import MILLISECOND_NS


@final
class ToldTool:
    """A tool call that has been told of: as much of it as shows whether another span tells of it again."""

    __slots__ = ("call_id", "end_ns", "scope", "start_ns", "tool")

    def __init__(self, tool: str, call_id: str | None, scope: str, start_ns: int, end_ns: int) -> None:
        self.tool = tool
        self.call_id = call_id
        self.scope = scope
        self.start_ns = start_ns
        self.end_ns = end_ns

    @classmethod
    def by(cls, fact: ToolFact) -> ToldTool:
        """What a span tells."""
        return cls(fact.call.tool, fact.call.call_id, fact.scope, fact.start_ns, fact.end_ns)


@final
class ToldModel:
    """A model call that has been told of: as much of it as shows whether another span tells of it again."""

    __slots__ = ("_input", "_output", "end_ns", "response_id", "scope", "span_id", "start_ns", "told_late")

    def __init__(self, fact: ModelFact) -> None:
        usage = fact.call.usage
        self._input = -1 if usage is None else usage.input
        self._output = -1 if usage is None else usage.output
        self.response_id = fact.response_id
        self.scope = fact.scope
        self.span_id = fact.span_id
        self.start_ns = fact.start_ns
        self.told_late = fact.told_late
        self.end_ns = fact.end_ns

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Input and output tokens, where the span told of them."""
        return None if self._input < 0 else (self._input, self._output)


def is_same_model_call(one: ModelFact | ToldModel, other: ModelFact) -> bool:
    """Whether two spans stand for one model call.

    Two instrumentations of one client give the same reply's id, and their spans share time: some servers draw
    the ids of their replies from few, so that the id alone says little. Where one of them gives none, their
    spans lie within each other and count the same tokens; one that was written late need only share time. Of a reply
    that was broken off neither tells anything, and each ends when it hears of that: they share most of their time.
    """
    if one.response_id and other.response_id:
        return one.response_id == other.response_id and share_time(one, other)
    if one.scope == other.scope:
        return False
    mine, theirs = _tokens(one), _tokens(other)
    if _lies_within(one, other):
        return mine is None or theirs is None or mine == theirs
    if mine is None and theirs is None and not one.response_id and not other.response_id:
        return _share_most_time(one, other)
    return (one.told_late or other.told_late) and mine is not None and mine == theirs and share_time(one, other)


def _tokens(one: ModelFact | ToldModel) -> tuple[int, int] | None:
    if isinstance(one, ToldModel):
        return one.tokens
    usage = one.call.usage
    return None if usage is None else (usage.input, usage.output)


def is_same_tool_call(one: ToldTool, other: ToolFact) -> bool:
    """Whether two spans of different instrumentations, neither inside the other, stand for one tool call."""
    first, second = one, other.call
    if first.call_id and second.call_id:
        return first.call_id == second.call_id and share_time(one, other)
    if one.scope == other.scope:
        return False
    if not is_same_tool_name(first.tool, second.tool):
        return False
    return _lies_within(one, other)


def share_time(one: Fact | ToldTool | ToldModel, other: Fact) -> bool:
    """Whether two spans run at the same time. One that begins as the other ends comes after it."""
    slack = _slack_ns(one, other)
    if one.start_ns < other.end_ns + slack and other.start_ns < one.end_ns + slack:
        return True
    return one.start_ns == other.start_ns and one.end_ns == other.end_ns


def _share_most_time(one: Fact | ToldModel, other: Fact) -> bool:
    shared = min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns)
    return 2 * shared > max(one.end_ns - one.start_ns, other.end_ns - other.start_ns)


def _lies_within(one: Fact | ToldTool | ToldModel, other: Fact) -> bool:
    slack = _slack_ns(one, other)
    if one.start_ns <= other.start_ns + slack and other.end_ns <= one.end_ns + slack:
        return True
    return other.start_ns <= one.start_ns + slack and one.end_ns <= other.end_ns + slack


def _slack_ns(one: Fact | ToldTool | ToldModel, other: Fact) -> int:
    """By how much the spans of two instrumentations may be off, which tell of one call.

    JavaScript's clock gives whole milliseconds, rounded down: a span that starts on one may lie up to one later.
    """
    if one.scope == other.scope or (one.start_ns % MILLISECOND_NS and other.start_ns % MILLISECOND_NS):
        return 0
    return MILLISECOND_NS


def merged(one: ModelFact, other: ModelFact) -> ModelFact:
    """One fact out of two spans of one model call: the outer one, with what the other carries beside."""
    outer, inner = (one, other) if one.start_ns <= other.start_ns and one.end_ns >= other.end_ns else (other, one)
    merge_usage(outer, inner)
    outer.counted = outer.counted or inner.counted
    outer.response_id = outer.response_id or inner.response_id
    outer.attributes = {**inner.attributes, **outer.attributes}
    if inner.dialect.tool_calls == "spans" and outer.dialect.tool_calls != "spans":
        outer.dialect = inner.dialect
    return outer


def merge_usage(into: ModelFact, other: ModelFact) -> None:
    """Fill what one span of a model call lacks from another span of the same call.

    Where both count tokens and differ, those of the library that made the call hold, or else of the span merged into.
    """
    call, told = into.call, other.call
    usage, beside = call.usage, told.usage
    if usage is None or (beside is not None and other.dialect.is_first_hand and not into.dialect.is_first_hand):
        usage, beside = beside, usage
    if usage is not None and beside is not None:
        usage.cache_read = usage.cache_read or beside.cache_read
        usage.cache_write = usage.cache_write or beside.cache_write
        usage.reasoning = usage.reasoning or beside.reasoning
    call.usage = usage
    call.model = call.model or told.model
    call.provider = call.provider or told.provider

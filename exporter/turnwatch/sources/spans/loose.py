"""Model calls that are traces of their own: which of them are one turn.

A raw client without a span round its loop gives every model call a trace of its own. What ties them
together is a conversation id, or the messages: the next call is told the results of the tool calls that
the last reply asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, TypeVar

from turnwatch.sources.spans.facts import ModelFact
from turnwatch.sources.spans.messages import (
    answered_to,
    asked_of,
    carries_reply,
    has_flat_reply,
    reply_text,
    wants_tools,
)
from turnwatch.sources.spans.scope import Fact, Scope, ToldModel, is_same_model_call, share_time

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_REMEMBERED: Final = 10_000
# Calls at once that have the same reply, word for word.
_SAME_REPLIES: Final = 64


class LooseCalls:
    """Remembers which turns wait for their next model call. Bounded; the oldest are forgotten."""

    def __init__(self) -> None:
        self._by_call_id: OrderedDict[str, Scope] = OrderedDict()
        self._by_conversation: OrderedDict[str, Scope] = OrderedDict()
        self._by_reply: OrderedDict[str, tuple[ToldModel, Scope]] = OrderedDict()
        self._waiting: OrderedDict[Hashable, list[Scope]] = OrderedDict()

    def clear(self) -> None:
        """Forget everything."""
        self._by_call_id.clear()
        self._by_conversation.clear()
        self._by_reply.clear()
        self._waiting.clear()

    def scope_for(self, fact: ModelFact, conversation: str | None) -> Scope | None:
        """The open turn that this model call goes on with, or None when it begins one."""
        if fact.response_id:
            told, scope = self._by_reply.get(fact.response_id, (None, None))
            if told is not None and scope is not None and not scope.closed and is_same_model_call(told, fact):
                return scope  # the same call by another instrumentation
        if conversation is not None:
            scope = self._by_conversation.get(conversation)
            if scope is not None and not scope.closed and scope.due is None:
                return scope
        if not self._by_call_id:
            return None
        for answer in reversed(answered_to(fact.attributes)):
            scope = self._by_call_id.get(answer.call_id)
            if scope is not None:
                # The reply may have turned out to be another turn's: what follows it will be told of there as well.
                return None if scope.closed or scope.into is not None else scope
        return None

    @staticmethod
    def waits(fact: ModelFact, conversation: str | None) -> bool:
        """Whether another instrumentation's span may tell of this call, and of its turn."""
        if fact.dialect.told_again:
            return any(_replies(fact))
        if not fact.dialect.is_first_hand or not fact.response_id or conversation is not None:
            return False
        return not carries_reply(fact.attributes)

    def wait(self, fact: ModelFact, scope: Scope) -> bool:
        """Remember a call that waits for another instrumentation to tell of it; whether its reply asks for tools."""
        for reply in _replies(fact):
            _put(self._waiting, reply, [*self._waiting.get(reply, ())[-_SAME_REPLIES:], scope])
        asked = [request.call_id for request in asked_of(fact.attributes) if request.call_id]
        for call_id in asked:
            _put(self._by_call_id, call_id, scope)
        return bool(asked)

    def told_already(self, fact: ModelFact) -> Scope | None:
        """The scope in which this call waits to be told of again, which it does no longer."""
        for reply in _replies(fact) if self._waiting else ():
            for scope in self._waiting.get(reply, ()):
                if (
                    not scope.is_turn
                    and scope.into is None
                    and scope.pending
                    and _is_same_reply(scope.pending[0], fact)
                ):
                    self._waiting[reply].remove(scope)
                    if not self._waiting[reply]:
                        del self._waiting[reply]
                    return scope
        return None

    def goes_on(self, scope: Scope, fact: ModelFact, attributes: Mapping[str, Any], conversation: str | None) -> bool:
        """Note what the reply asked for; False when it asked for nothing, which ends the turn."""
        if fact.response_id:
            _put(self._by_reply, fact.response_id, (ToldModel(fact), scope))
        asked = scope.asked or ()
        for request in asked:
            if request.call_id:
                _put(self._by_call_id, request.call_id, scope)
        if conversation is not None:
            _put(self._by_conversation, conversation, scope)
        if asked and any(request.call_id for request in asked):
            return True
        return conversation is not None and not carries_reply(attributes) and wants_tools(attributes) is True


def _replies(fact: ModelFact) -> Iterator[Hashable]:
    """What shows other spans to tell of the same reply: its id, and where they leave that out the reply itself."""
    if fact.response_id:
        yield fact.response_id
    if not has_flat_reply(fact.attributes):
        return  # of a convention in which no call is told of again, and its messages are not worth reading
    asked = tuple(request.call_id for request in asked_of(fact.attributes) if request.call_id)
    text = "" if asked else reply_text(fact.attributes)
    if asked or text:
        yield asked or hash(text)


def _is_same_reply(told: Fact, fact: ModelFact) -> bool:
    """Whether another instrumentation told of this call: by the reply's id, or as one inside this one.

    Then it has to be of the same model, with the same tokens, and the same reply, by which it was found.
    """
    if not isinstance(told, ModelFact) or told.scope == fact.scope:
        return False
    if told.response_id and fact.response_id:
        return told.response_id == fact.response_id and share_time(told, fact)
    mine, theirs = fact.call.usage, told.call.usage
    return (
        fact.start_ns <= told.start_ns
        and told.end_ns <= fact.end_ns
        and fact.call.model == told.call.model
        and mine is not None
        and theirs is not None
        and (mine.input, mine.output) == (theirs.input, theirs.output)
    )


def _put(index: OrderedDict[K, V], key: K, value: V) -> None:
    index[key] = value
    index.move_to_end(key)
    if len(index) > _REMEMBERED:
        index.popitem(last=False)

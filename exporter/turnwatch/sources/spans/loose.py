"""Model calls that are traces of their own: which of them are one turn.

A raw client without a span round its loop gives every model call a trace of its own. What ties them
together is a conversation id, or the messages: the next call is told the results of the tool calls that
the last reply asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from turnwatch.sources.spans.facts import ModelFact
from turnwatch.sources.spans.messages import answered_to, carries_reply, wants_tools
from turnwatch.sources.spans.scope import Scope

_REMEMBERED: Final = 10_000


class LooseCalls:
    """Remembers which turns wait for their next model call. Bounded; the oldest are forgotten."""

    def __init__(self) -> None:
        self._by_call_id: OrderedDict[str, Scope] = OrderedDict()
        self._by_conversation: OrderedDict[str, Scope] = OrderedDict()
        self._by_reply: OrderedDict[str, Scope] = OrderedDict()
        self._waiting: OrderedDict[str, Scope] = OrderedDict()

    def clear(self) -> None:
        """Forget everything."""
        self._by_call_id.clear()
        self._by_conversation.clear()
        self._by_reply.clear()
        self._waiting.clear()

    def scope_for(self, fact: ModelFact, conversation: str | None) -> Scope | None:
        """The open turn that this model call goes on with, or None when it begins one."""
        if fact.response_id:
            scope = self._by_reply.get(fact.response_id)  # the same call by another instrumentation
            if scope is not None and not scope.closed:
                return scope
        if conversation is not None:
            scope = self._by_conversation.get(conversation)
            if scope is not None and not scope.closed and scope.due is None:
                return scope
        if not self._by_call_id:
            return None
        for answer in reversed(answered_to(fact.attributes)):
            scope = self._by_call_id.get(answer.call_id)
            if scope is not None:
                return None if scope.closed else scope
        return None

    @staticmethod
    def waits_for_messages(fact: ModelFact, conversation: str | None) -> bool:
        """Whether a call says nothing of its turn, and another instrumentation's span of it may."""
        if not fact.dialect.is_first_hand or not fact.response_id or conversation is not None:
            return False
        return not carries_reply(fact.attributes)

    def wait(self, fact: ModelFact, scope: Scope) -> None:
        """Remember a call that waits for another instrumentation to tell of it."""
        _put(self._waiting, fact.response_id, scope)

    def told_already(self, fact: ModelFact) -> Scope | None:
        """The scope in which this call waits to be told of again, which it does no longer."""
        waiting = self._waiting.pop(fact.response_id, None) if fact.response_id else None
        return None if waiting is None or waiting.is_turn or waiting.into is not None else waiting

    def goes_on(self, scope: Scope, fact: ModelFact, attributes: Mapping[str, Any], conversation: str | None) -> bool:
        """Note what the reply asked for; False when it asked for nothing, which ends the turn."""
        if fact.response_id:
            _put(self._by_reply, fact.response_id, scope)
        asked = scope.asked or ()
        for request in asked:
            if request.call_id:
                _put(self._by_call_id, request.call_id, scope)
        if conversation is not None:
            _put(self._by_conversation, conversation, scope)
        if asked and any(request.call_id for request in asked):
            return True
        return conversation is not None and not carries_reply(attributes) and wants_tools(attributes) is True


def _put(index: OrderedDict[str, Scope], key: str, scope: Scope) -> None:
    index[key] = scope
    index.move_to_end(key)
    if len(index) > _REMEMBERED:
        index.popitem(last=False)

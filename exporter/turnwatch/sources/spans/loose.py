"""Model calls that are traces of their own, and their tool calls: which of them are one turn.

A raw client without a span round its loop gives every model call a trace of its own. What ties them
together is a conversation id, or the messages: the next call is told the results of the tool calls that
the last reply asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from turnwatch.core.events import ToolCall
from turnwatch.core.latest import keep_latest
from turnwatch.sources.spans.answered import answered_to
from turnwatch.sources.spans.arguments import may_be_arguments_of
from turnwatch.sources.spans.facts import ModelFact, is_same_tool_name
from turnwatch.sources.spans.messages import Asked, asked_before, asked_of, carries_reply, wants_tools
from turnwatch.sources.spans.same_call import ToldModel, is_same_model_call
from turnwatch.sources.spans.scope import Scope

_REMEMBERED: Final = 10_000
# How many turns are looked through for the one that asked for a tool call.
_ASKING: Final = 256


class LooseCalls:
    """Remembers which turns wait for their next model call. Bounded; the oldest are forgotten."""

    def __init__(self) -> None:
        self._by_call_id: OrderedDict[str, Scope] = OrderedDict()
        self._by_conversation: OrderedDict[str, Scope] = OrderedDict()
        self._by_reply: OrderedDict[str, tuple[ToldModel, Scope]] = OrderedDict()
        self._asking: OrderedDict[Scope, list[Asked]] = OrderedDict()

    def clear(self) -> None:
        """Forget everything."""
        self._by_call_id.clear()
        self._by_conversation.clear()
        self._by_reply.clear()
        self._asking.clear()

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
        results = [answer.call_id for answer in answered_to(fact.attributes)]
        # OpenAI's Responses have ids for items beside those for calls, and some tell of a reply's calls by those.
        asked = [request.call_id for request in asked_before(fact.attributes)[0]] if results else []
        for call_id in (*reversed(results), *asked):
            scope = self._by_call_id.get(call_id)
            if scope is not None:
                # The reply may have turned out to be another turn's: what follows it will be told of there as well.
                return None if scope.closed or scope.into is not None else scope
        return None

    def asks(self, fact: ModelFact, scope: Scope) -> bool:
        """Note what the reply of a call asked for that is not counted yet; False when it asked for nothing."""
        return self._note(asked_of(fact.attributes), scope)

    def _note(self, asked: list[Asked], scope: Scope) -> bool:
        called = [request for request in asked if request.call_id]
        for request in called:
            keep_latest(self._by_call_id, request.call_id, scope, _REMEMBERED)
        keep_latest(self._asking, scope, called, _ASKING)
        return bool(called)

    def asked_for(self, call: ToolCall, service: str) -> Scope | None:
        """The turn whose last reply asked for this tool call, which is a trace of its own; None when it is nobody's."""
        for asking, requests in reversed(self._asking.items()):
            scope = asking.found()
            if scope.service != service or scope.closed:
                continue
            for request in requests:
                if _asks_for(request, call):
                    requests.remove(request)
                    return scope
        return None

    def forget(self, scope: Scope) -> None:
        """Have no call go on with this turn."""
        self._asking.pop(scope, None)
        for index in (self._by_call_id, self._by_conversation):
            for key in [key for key, known in index.items() if known is scope]:
                del index[key]

    def goes_on(self, scope: Scope, fact: ModelFact, attributes: Mapping[str, Any], conversation: str | None) -> bool:
        """Note what the reply asked for; False when it asked for nothing, which ends the turn."""
        if fact.response_id:
            keep_latest(self._by_reply, fact.response_id, (ToldModel(fact), scope), _REMEMBERED)
        goes_on = self._note(scope.asked or (asked_of(fact.attributes) if scope.has_tools else []), scope)
        if conversation is not None:
            keep_latest(self._by_conversation, conversation, scope, _REMEMBERED)
        if goes_on:
            return True
        return conversation is not None and not carries_reply(attributes) and wants_tools(attributes) is True


def _asks_for(request: Asked, call: ToolCall) -> bool:
    """Whether a reply asked for this very call: by its id, or where its span has none, by what it is given."""
    if not is_same_tool_name(request.tool, call.tool):
        return False
    if call.call_id:
        return request.call_id == call.call_id
    return may_be_arguments_of(request.arguments, call.args)

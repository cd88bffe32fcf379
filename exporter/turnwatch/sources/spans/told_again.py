"""Model calls that two instrumentations tell of in two traces: which spans stand for one call.

A client's span is a trace of its own where the framework's instrumentation puts none of its spans round it
(OpenInference for LangChain), and the framework's span of the same call hangs in the turn that it belongs to. The
client's ends first, so its call waits for the framework's; in a service of which no call was told of again it waits no
longer. Whatever comes in another order is counted once all the same, where it came first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from typing import Final, final

from turnwatch.core.latest import keep_latest
from turnwatch.sources.spans.facts import ModelFact
from turnwatch.sources.spans.messages import asked_of, carries_reply, has_flat_reply, reply_text, said_in
from turnwatch.sources.spans.same_call import ToldModel, is_same_model_call
from turnwatch.sources.spans.scope import Scope

# The SDK's batches are five seconds apart, and the two spans may stand in two of them.
_WAIT_SECONDS: Final = 10.0
_REMEMBERED: Final = 10_000
_SERVICES: Final = 1_000
# Calls at once that have the same reply, word for word.
_SAME_REPLIES: Final = 64


class ToldAgain:
    """Remembers calls of which other spans may tell as well. Bounded; the oldest are forgotten."""

    def __init__(self) -> None:
        self._alone = _ByReply()  # calls that are traces of their own, waiting or counted
        self._above = _ByReply()  # calls counted where their framework has them
        self._inside = _ByReply()  # calls that hang under a span that is still to come, or never comes
        self._waiting: OrderedDict[Scope, float] = OrderedDict()  # since when
        self._happens: OrderedDict[str, bool] = OrderedDict()  # by service, as soon as that shows

    def clear(self) -> None:
        """Forget all calls."""
        self._alone.calls.clear()
        self._above.calls.clear()
        self._inside.calls.clear()
        self._waiting.clear()

    def may_happen(self, fact: ModelFact, conversation: str | None, service: str) -> bool:
        """Whether another instrumentation's span may tell of this call, a trace of its own, and of its turn."""
        if self._happens.get(service) is False:
            return False
        if fact.dialect.told_again:
            return any(_replies(fact))
        if not fact.dialect.is_first_hand or not fact.response_id or conversation is not None:
            return False
        return not carries_reply(fact.attributes)

    def wait(self, scope: Scope, now: float) -> None:
        """Have a call, which this scope holds, wait to be told of again."""
        keep_latest(self._waiting, scope, now, _REMEMBERED)

    def waited_in_vain(self, now: float) -> list[Scope]:
        """The scopes of calls of which nobody told again in time. They wait no longer."""
        scopes: list[Scope] = []
        while self._waiting and next(iter(self._waiting.values())) <= now - _WAIT_SECONDS:
            scope, _ = self._waiting.popitem(last=False)
            if waits(scope):
                scopes.append(scope)
                if scope.service not in self._happens:
                    keep_latest(self._happens, scope.service, False, _SERVICES)
        return scopes

    def note_alone(self, fact: ModelFact, scope: Scope) -> None:
        """Note a call that is a trace of its own."""
        self._alone.put(_replies(fact), fact, scope)

    def note_above(self, fact: ModelFact, scope: Scope) -> None:
        """Note a call that is counted where its framework has it, if a client's span may tell of it as well."""
        if not fact.dialect.told_again and has_flat_reply(fact.attributes):
            self._above.put((fact.response_id,) if fact.response_id else _replies(fact), fact, scope)

    def note_inside(self, fact: ModelFact, scope: Scope) -> None:
        """Note a call of the library that makes it: a wrapper's span of it, in another trace, may come after it.

        LangSmith's wrappers make a span of theirs the current one, and export another with an id of its own.
        """
        if fact.dialect.is_first_hand and fact.response_id and waits(scope):
            self._inside.put((fact.response_id,), fact, scope)

    def take_inside(self, fact: ModelFact) -> Scope | None:
        """The scope in which the same call still waits, under a span that has not come."""
        scope = self._inside.take(fact) if self._inside.calls else None
        return scope if scope is not None and waits(scope) else None

    def take_alone(self, fact: ModelFact) -> Scope | None:
        """The scope of the same call, told of as a trace of its own; it is not to be told of a third time."""
        return self._taken(self._alone, fact) if self._alone.calls else None

    def take_above(self, fact: ModelFact) -> Scope | None:
        """The scope of the same call, counted where its framework has it; it is not to be told of a third time."""
        return self._taken(self._above, fact) if self._above.calls else None

    def _taken(self, calls: _ByReply, fact: ModelFact) -> Scope | None:
        scope = calls.take(fact)
        if scope is not None:
            keep_latest(self._happens, scope.service, True, _SERVICES)
        return scope


def waits(scope: Scope) -> bool:
    """Whether a call in a scope of its own has not been counted yet."""
    return not scope.is_turn and scope.into is None and bool(scope.pending)


@final
class _Told:
    """A call, and the scope that it is in until another span has told of it."""

    __slots__ = ("call", "model", "scope")

    def __init__(self, fact: ModelFact, scope: Scope) -> None:
        self.call = ToldModel(fact)
        self.model = fact.call.model
        self.scope: Scope | None = scope


class _ByReply:
    """Calls by what shows other spans to tell of the same reply."""

    def __init__(self) -> None:
        self.calls: OrderedDict[Hashable, list[_Told]] = OrderedDict()

    def put(self, replies: Iterable[Hashable], fact: ModelFact, scope: Scope) -> None:
        """Remember a call under each of these."""
        told = _Told(fact, scope)
        for reply in replies:
            same = [*self.calls.get(reply, ())[-_SAME_REPLIES:], told]
            keep_latest(self.calls, reply, same, _REMEMBERED)

    def take(self, fact: ModelFact) -> Scope | None:
        """The scope of the call that this span tells of as well."""
        for reply in _replies(fact):
            for told in self.calls.get(reply, ()):
                if told.scope is not None and _is_same_reply(told, fact):
                    scope, told.scope = told.scope.found(), None
                    return scope
        return None


def _replies(fact: ModelFact) -> Iterator[Hashable]:
    """What shows other spans to tell of the same reply: its id, and where they leave that out the reply itself."""
    if fact.response_id:
        yield fact.response_id
    is_flat = has_flat_reply(fact.attributes)
    if not is_flat and not fact.dialect.told_again:
        return  # of a convention in which no call is told of again, and its messages are not worth reading
    asked = tuple(request.call_id for request in asked_of(fact.attributes) if request.call_id)
    text = "" if asked else (reply_text if is_flat else said_in)(fact.attributes)
    if asked or text:
        yield asked or hash(text)


def _is_same_reply(told: _Told, fact: ModelFact) -> bool:
    """Whether another instrumentation told of this call: by the reply's id, or as one inside or round this one.

    Then it has to be of the same model, with the same tokens, and the same reply, by which it was found.
    """
    call = told.call
    if call.scope == fact.scope or not is_same_model_call(call, fact):
        return False
    if call.response_id and fact.response_id:
        return True
    return told.model == fact.call.model and call.tokens is not None and fact.call.usage is not None

"""What turnwatch remembers of a conversation: the turns that share an id."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from turnwatch.core.account import Account
from turnwatch.core.engine import Engine
from turnwatch.core.forking import shared_lock
from turnwatch.core.keys import KeyTable, key_of


class ConversationState:
    """Counts over the turns of one conversation.

    Attributes:
        model_calls: Model calls of all its turns.
        spend_usd: Dollars of all its turns, as far as known.
        tokens: Input and output tokens of all its turns.
        engine: Judges the calls of all its turns as one sequence; ``judging`` guards it.
        account: What its guarded turns have used of the conversation's limits.
    """

    __slots__ = (
        "account",
        "conversation_id",
        "engine",
        "judging",
        "keys",
        "last_active",
        "model_calls",
        "spend_usd",
        "tokens",
        "turns",
    )

    def __init__(self, conversation_id: str, engine: Engine, key_bound: int) -> None:
        self.conversation_id = conversation_id
        self.engine = engine
        self.judging = shared_lock()
        self.account = Account(scope="conversation")
        self.keys = KeyTable(key_bound)
        self.model_calls = 0
        self.spend_usd = 0.0
        self.tokens = 0
        self.turns = 0
        self.last_active = 0.0

    def adopted(self, agent: str) -> None:
        """Note that a turn of this agent was a sub-agent's of one that began behind it."""
        with self.judging:
            self.engine.adopted(agent)

    def identical_calls(self, tool: str, input_hash: str) -> int:
        """How often this (tool, input hash) was called over all turns, as far as remembered."""
        return self.keys.count(key_of(tool, input_hash))


class Conversations:
    """The conversations of this process: bounded, the longest idle dropped first, and forgotten after a while.

    Args:
        make: Makes one.
        bound: How many are remembered.
        ttl_seconds: For how long one without news is.
        before: Those in whose place they come, and which go on here. Whoever guards these guards those as well.
    """

    def __init__(
        self,
        make: Callable[[str], ConversationState],
        bound: int,
        ttl_seconds: float,
        before: Conversations | None = None,
    ) -> None:
        self._make = make
        self._bound = bound
        self._ttl = ttl_seconds
        self._by_id: OrderedDict[str, ConversationState] = OrderedDict() if before is None else before._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    def touch(self, conversation_id: str, now: float) -> tuple[ConversationState, int]:
        """The conversation of this id, and how many others had to be dropped to make room for it."""
        self._expire(now)
        conversation = self._by_id.get(conversation_id)
        dropped = 0
        if conversation is None:
            conversation = self._by_id[conversation_id] = self._make(conversation_id)
            while len(self._by_id) > self._bound:
                self._by_id.popitem(last=False)
                dropped += 1
        else:
            self._by_id.move_to_end(conversation_id)
        conversation.last_active = max(now, conversation.last_active)
        return conversation, dropped

    def get(self, conversation_id: str) -> ConversationState | None:
        """The conversation of this id, if it is known."""
        return self._by_id.get(conversation_id)

    def _expire(self, now: float) -> None:
        while self._by_id:
            oldest = next(iter(self._by_id.values()))
            if oldest.last_active + self._ttl > now:
                return
            self._by_id.popitem(last=False)

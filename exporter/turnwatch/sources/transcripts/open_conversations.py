"""Which conversation a logged request goes on with: by name, by the response before it, or by the same beginning."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import Any, Final

import orjson

from turnwatch.sources.transcripts.recording import Recording

# Conversations that go on side by side in a log; the one that was quiet longest is taken to be over.
_BOUND: Final = 1000


class OpenConversations:
    """The conversations of a log that may still go on, each known by what the next request can say of it."""

    def __init__(self) -> None:
        self._made = 0
        self._open: OrderedDict[int, _Conversation] = OrderedDict()
        self._by_key: dict[str, _Conversation] = {}
        self._names: dict[str, None] = {}

    def new(self, agent: str, named: str | None) -> Recording:
        """A conversation that nothing is known of. One without a name is called by its number in the file."""
        self._made += 1
        name = named or str(self._made)
        prefix = f"{name}/{self._made}" if name in self._names else name
        self._names[name] = None
        return Recording(name, agent, turn_prefix=prefix)

    def find(
        self, messages: list[Any], *, named: str | None, previous: object, agent: str
    ) -> tuple[Recording, list[Any]]:
        """The conversation of a request, and what its messages add to it.

        Args:
            messages: All messages of the request.
            named: The conversation's id, where the log gives one.
            previous: The id of the response that the request goes on from, where it gives one.
            agent: The agent, for a new conversation.
        """
        beginnings = _beginnings(messages)
        for length in range(len(messages), 0, -1):
            known = self._by_key.get(f"messages {named} {beginnings[length - 1]}")
            # The same request once more is a retry after a failure, else another run of the same thing.
            if known is None or (length == len(messages) and known.answered is not False):
                continue
            start = length
            # The answer to the earlier request was read from its response.
            while known.answered and start < len(messages) and _is_said(messages[start]):
                start += 1
            return self._take(known), messages[start:]
        known = self._by_key.get(f"response {previous}") if previous else None
        # Earlier messages were cut or are not repeated. A request that begins with a prompt and holds no reply yet
        # is another agent's under the same name.
        if known is None and named is not None and (any(map(_is_said, messages)) or not _begins_anew(messages)):
            known = self._by_key.get(f"name {named}")
        if known is None:
            return self.new(agent, named), messages
        last_said = max((at for at, message in enumerate(messages) if _is_said(message)), default=-1)
        return self._take(known), messages[last_said + 1 :]

    def keep(
        self,
        recording: Recording,
        messages: list[Any],
        *,
        named: str | None,
        response_id: object,
        answered: bool | None,
    ) -> Recording | None:
        """Remember a conversation as it stands after a request; returns one that is over to make room.

        Args:
            recording: The conversation.
            messages: All messages of the request.
            named: Its id, where the log gives one.
            response_id: The id of the response, by which the next request may name it.
            answered: Whether a response came; None where the log has no responses.
        """
        keys = [f"name {named}"] if named is not None else []
        if response_id:
            keys.append(f"response {response_id}")
        if messages:
            keys.append(f"messages {named} {_beginnings(messages)[-1]}")
        conversation = _Conversation(recording, keys, answered)
        for key in keys:
            self._by_key[key] = conversation
        self._open[id(recording)] = conversation
        if len(self._open) <= _BOUND:
            return None
        return self._take(next(iter(self._open.values())))

    def all(self) -> list[Recording]:
        """All that are still open."""
        return [conversation.recording for conversation in self._open.values()]

    def _take(self, conversation: _Conversation) -> Recording:
        self._open.pop(id(conversation.recording), None)
        for key in conversation.keys:
            if self._by_key.get(key) is conversation:
                del self._by_key[key]
        return conversation.recording


class _Conversation:
    __slots__ = ("answered", "keys", "recording")

    def __init__(self, recording: Recording, keys: list[str], answered: bool | None) -> None:
        self.recording = recording
        self.keys = keys
        self.answered = answered


def _begins_anew(messages: list[Any]) -> bool:
    return bool(messages) and isinstance(messages[0], dict) and messages[0].get("role") in ("system", "developer")


def _is_said(message: object) -> bool:
    """Whether the model said it: a message of the assistant's, or an item that is a call or its reasoning."""
    if not isinstance(message, dict):
        return False
    kind = str(message.get("type"))
    return message.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _beginnings(messages: list[Any]) -> list[str]:
    """A digest of the first message, of the first two, and so on."""
    digest = hashlib.blake2b(digest_size=16)
    digests: list[str] = []
    for message in messages:
        digest.update(_as_bytes(_without_marks(message)))
        digests.append(digest.copy().hexdigest())
    return digests


def _as_bytes(message: object) -> bytes:
    try:
        return orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # half a surrogate pair, an int beyond 64 bits
        return json.dumps(message, sort_keys=True).encode()


def _without_marks(message: object) -> object:
    # Clients move the mark up to which a prompt is cached along with the conversation.
    if isinstance(message, dict):
        content = message.get("content")
        if isinstance(content, list):
            blocks = [
                {key: value for key, value in block.items() if key != "cache_control"}
                if isinstance(block, dict)
                else block
                for block in content
            ]
            # Marking a text makes a block of it.
            plain = len(blocks) == 1 and isinstance(blocks[0], dict) and set(blocks[0]) == {"type", "text"}
            return {**message, "content": blocks[0]["text"] if plain else blocks}
    return message

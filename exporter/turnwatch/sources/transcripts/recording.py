"""The messages of one agent, in order, as turns: which calls and replies belong to which turn and to which reply."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from turnwatch.core.events import MISSING, ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.sources.trajectories import RecordedTurn

# Clients that write numbers write seconds, milliseconds or finer; no conversation was held after the year 5000.
_LATEST_SECONDS: Final = 1e11


class Recording:
    """What one agent did for its user, cut into turns at the user's messages.

    A turn begins with the first reply after a message of the user; a message that nobody answered is none.

    Attributes:
        conversation_id: The conversation's id.
        agent: The agent's name.
    """

    def __init__(self, conversation_id: str, agent: str, *, turn_prefix: str | None = None) -> None:
        self.conversation_id = conversation_id
        self.agent = agent
        self._prefix = turn_prefix or conversation_id
        self._turns = 0
        self._asked_on_line = 0
        self._open: RecordedTurn | None = None
        self._reply: _Reply | None = None
        self._last: _Reply | None = None
        self._replies: dict[str, _Reply] = {}
        self._calls: dict[str, ToolCall] = {}
        self._rounds = 0

    @property
    def is_open(self) -> bool:
        """Whether a turn has begun and not ended."""
        return self._open is not None

    @property
    def awaits_reply(self) -> bool:
        """Whether the next thing that the agent says is a new reply."""
        return self._reply is None

    def user(self, line: int) -> Iterator[RecordedTurn]:
        """The user says something: the open turn is over, and the next reply begins another.

        Args:
            line: Where in the file (1-based).
        """
        yield from self.end()
        self._asked_on_line = line

    def reply(
        self,
        line: int,
        *,
        reply_id: str | None = None,
        model: str = "",
        provider: str = "",
        usage: Usage | None = None,
        spend_usd: float | None = None,
        at: float | None = None,
        failed: bool = False,
    ) -> None:
        """The model replies. A reply that is written in pieces with one id is one.

        Args:
            line: Where in the file (1-based).
            reply_id: The provider's id of the reply.
            model: The model that replied.
            provider: Its provider.
            usage: Tokens of the reply; of several pieces the largest count, for a piece may be an early one.
            spend_usd: Dollars, where the file says.
            at: Seconds since the epoch.
            failed: The request failed.
        """
        turn = self._turn(line)
        known = self._replies.get(reply_id) if reply_id else None
        if known is not None:
            self._reply = self._last = known
            known.event.usage = _larger(known.event.usage, usage)
            return
        self.close_reply()
        event = ModelCall(
            model,
            provider=provider,
            usage=usage,
            spend_usd=spend_usd,
            outcome="error" if failed else "ok",
            started=at,
            ended=at,
        )
        self._rounds += 1
        self._reply = self._last = _Reply(event, self._rounds)
        if reply_id:
            self._replies[reply_id] = self._reply
        turn.events.append(event)

    def add_usage(self, usage: Usage | None, spend_usd: float | None = None) -> None:
        """The file says only now what the last reply used."""
        if self._open is None:
            return
        for event in reversed(self._open.events):
            if isinstance(event, ModelCall):
                event.usage = event.usage or usage
                event.spend_usd = spend_usd if event.spend_usd is None else event.spend_usd
                return

    def name_model(self, model: str, provider: str = "") -> None:
        """Which model gave the open reply, where something other than the reply says it."""
        if self._reply is not None and not self._reply.event.model:
            self._reply.event.model, self._reply.event.provider = model, provider

    def close_reply(self) -> None:
        """What the agent says next is a new reply."""
        if self._reply is not None and self._reply.texts and not self._reply.calls:
            self._reply.event.text = Evidence.of("\n".join(self._reply.texts))
        self._reply = None

    def text(self, text: str) -> None:
        """Text of the open reply."""
        if self._reply is not None and text.strip():
            self._reply.texts.append(text)

    def call(
        self, line: int, tool: str, args: object = MISSING, *, call_id: str | None = None, at: float | None = None
    ) -> None:
        """The open reply asks for a tool call. One that was recorded before is not counted again.

        Args:
            line: Where in the file (1-based).
            tool: The tool's name.
            args: Its arguments, an object or JSON text; MISSING where the file has none.
            call_id: The model's id of the call, by which its result is found.
            at: Seconds since the epoch.
        """
        if call_id and call_id in self._calls:
            return
        if self._reply is None:
            self.reply(line, at=at)
        assert self._reply is not None
        event = ToolCall(
            tool,
            args,
            started=at,
            ended=at,
            round=self._reply.round,
            agent=self.agent,
            call_id=call_id,
            line=line,
        )
        self._reply.calls += 1
        if call_id:
            self._calls[call_id] = event
        self._turn(line).events.append(event)

    def result(self, call_id: str | None, content: object, *, failed: bool = False, at: float | None = None) -> None:
        """What a call returned. The result of a call that the file does not have is passed over.

        Args:
            call_id: The call's id; None for the first call without a result.
            content: Text, blocks of text, or any object.
            failed: The call failed.
            at: Seconds since the epoch.
        """
        call = self._calls.get(call_id) if call_id else self._first_without_result()
        if call is None:
            return
        call.result = Evidence.of(plain_text(content))
        call.outcome = "error" if failed else "ok"
        call.ended = at if at is not None else call.ended

    def known_result(self, result: Evidence | None, *, failed: bool, at: float | None) -> None:
        """What the call that was recorded last returned, where the file has both in one place."""
        event = self._open.events[-1] if self._open is not None else None
        if isinstance(event, ToolCall):
            event.result = result
            event.outcome = "error" if failed else "ok"
            event.ended = at if at is not None else event.ended

    def end(self, stop_reason: str | None = None) -> Iterator[RecordedTurn]:
        """The open turn is over, if there is one.

        Args:
            stop_reason: One of ``turnwatch.core.events.STOP_REASONS``; by default what the last reply tells:
                "final_answer" when it asked for no tool, "unknown" when the turn ends in the middle.
        """
        turn, reply = self._open, self._last
        if turn is None:
            return
        self.close_reply()
        if stop_reason is None:
            if reply is None or reply.calls:
                stop_reason = "unknown"
            else:
                stop_reason = "error" if reply.event.outcome == "error" else "final_answer"
        turn.stop_reason = stop_reason
        self._open = None
        self._replies.clear()
        self._calls.clear()
        yield turn

    def _turn(self, line: int) -> RecordedTurn:
        if self._open is None:
            self._turns += 1
            self._rounds = 0
            self._reply = self._last = None
            turn_id = f"{self._prefix}/{self._turns}"
            self._open = RecordedTurn(self.conversation_id, turn_id, self.agent, line=self._asked_on_line or line)
            self._asked_on_line = 0
        return self._open

    def _first_without_result(self) -> ToolCall | None:
        events = self._open.events if self._open is not None else []
        return next((event for event in events if isinstance(event, ToolCall) and event.result is None), None)


class _Reply:
    __slots__ = ("calls", "event", "round", "texts")

    def __init__(self, event: ModelCall, round: int) -> None:
        self.event = event
        self.round = round
        self.calls = 0
        self.texts: list[str] = []


def plain_text(content: object) -> object:
    """The text of a message or result that comes in blocks; what is more than text stays as it is."""
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return content["text"]
    if isinstance(content, list) and content:
        texts = [block if isinstance(block, str) else _block_text(block) for block in content]
        if all(text is not None for text in texts):
            return "\n".join(text for text in texts if text is not None)
    return content


def _block_text(block: object) -> str | None:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else None


def seconds(at: Any) -> float | None:
    """A time of ISO text or a number of seconds, milliseconds or finer as seconds since the epoch; None if neither."""
    if isinstance(at, str):
        try:
            moment = datetime.fromisoformat(at)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not at > 0:
        return None
    value = float(at)
    while value > _LATEST_SECONDS:
        value /= 1000.0
    return value


def _larger(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    return Usage(
        max(one.input, other.input),
        max(one.output, other.output),
        max(one.cache_read, other.cache_read),
        max(one.cache_write, other.cache_write),
        max(one.reasoning, other.reasoning),
    )

"""Transcripts of Claude Code: ``~/.claude/projects/**.jsonl``, one event of a session a line.

Lines have a type ("user", "assistant", "system", "summary" and others that say nothing about calls), the session's id,
and the message as the Messages API has it. One reply is written over several lines, one content block each, all with
the reply's id and its usage. Tool results come as user messages. A sub-agent's lines are marked isSidechain: in a file
of their own with the sub-agent's agentId and the name of its kind, in older versions among the session's lines as a
chain of parentUuid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.anthropic_messages import add_response, add_results, has_results
from turnwatch.sources.transcripts.recording import Recording, plain_text, seconds
from turnwatch.sources.transcripts.records import read_records
from turnwatch.sources.wrong_shape import what_is_wrong

_AGENT: Final = "claude-code"
_SUB_AGENT: Final = "subagent"
_INTERRUPTED: Final = "[Request interrupted by user"
# What Claude Code says in the user's name when something that it runs in the background has ended.
_NOTIFICATION: Final = "<task-notification>"
# What Claude Code writes itself in the name of a model: notices, and errors of the API.
_NO_MODEL: Final = "<synthetic>"


def claims(record: object) -> bool:
    """Whether a parsed line is one of a Claude Code transcript."""
    if not isinstance(record, dict):
        return False
    if record.get("type") == "summary":
        return "leafUuid" in record
    if record.get("type") in ("user", "assistant", "system"):
        return "sessionId" in record and "uuid" in record
    return False


def read(stream: IO[bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of a transcript: the session's, each followed by those of its sub-agents.

    The sub-agents' turns name the turn that they belong to as parent when it is in the same file.
    """
    session = _Session()
    for item in read_records(stream):
        if isinstance(item, BrokenLine):
            yield item
            continue
        line, record = item
        if not isinstance(record, dict):
            continue
        try:
            yield from session.add(line, record)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            yield BrokenLine(line, f"an event that cannot be read: {what_is_wrong(error)}")
    yield from session.end()


class _Session:
    def __init__(self) -> None:
        self._main: Recording | None = None
        self._chains: dict[str, Recording] = {}
        # Until the session's turn ends: the chain of a line, what sub-agents were asked, their finished turns.
        self._chain_of: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._finished: list[RecordedTurn] = []

    def add(self, line: int, record: dict[str, Any]) -> Iterator[RecordedTurn]:
        kind, message = record.get("type"), record.get("message")
        if kind == "system" and record.get("subtype") == "api_error":
            self._note_failed_request(line, record)
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            return
        if record.get("isSidechain"):
            recording = self._sub_agent(record, message)
            self._finished.extend(_add(recording, line, record, message))
            if self._main is None or not self._main.is_open:
                yield from self._drain(None)
            return
        session = str(record.get("sessionId") or "")
        if self._main is not None and self._main.conversation_id != session:
            yield from self.end()
            self._main = None
        if self._main is None:
            self._main = Recording(session, _AGENT)
        for turn in _add(self._main, line, record, message):
            yield from self._with_sub_agents(turn)
        if kind == "assistant":
            self._note_what_is_asked(message)

    def end(self) -> Iterator[RecordedTurn]:
        for turn in self._main.end() if self._main is not None else ():
            yield from self._with_sub_agents(turn)
        yield from self._end_sub_agents(None)

    def _with_sub_agents(self, turn: RecordedTurn) -> Iterator[RecordedTurn]:
        yield turn
        yield from self._end_sub_agents(turn)

    def _end_sub_agents(self, parent: RecordedTurn | None) -> Iterator[RecordedTurn]:
        for recording in self._chains.values():
            self._finished.extend(recording.end())
        self._chains.clear()
        self._chain_of.clear()
        self._asked.clear()
        yield from self._drain(parent)

    def _drain(self, parent: RecordedTurn | None) -> Iterator[RecordedTurn]:
        for turn in self._finished:
            turn.parent = parent
            yield turn
        self._finished.clear()

    def _sub_agent(self, record: dict[str, Any], message: dict[str, Any]) -> Recording:
        uuid = str(record.get("uuid"))
        chain = record.get("agentId") or self._chain_of.get(str(record.get("parentUuid"))) or uuid
        if not record.get("agentId"):
            self._chain_of[uuid] = chain
        recording = self._chains.get(chain)
        if recording is None:
            session = str(record.get("sessionId") or "")
            agent = self._asked.get(str(plain_text(message.get("content"))), _SUB_AGENT)
            recording = self._chains[chain] = Recording(session, agent, turn_prefix=f"{session}/{chain}")
        if recording.agent == _SUB_AGENT and isinstance(record.get("attributionAgent"), str):
            recording.agent = record["attributionAgent"]
        return recording

    def _note_failed_request(self, line: int, record: dict[str, Any]) -> None:
        """A request that failed and is made again. Those of sub-agents do not say whose they are."""
        if self._main is not None and not record.get("isSidechain"):
            self._main.reply(line, at=seconds(record.get("timestamp")), failed=True)
            self._main.close_reply()

    def _note_what_is_asked(self, message: dict[str, Any]) -> None:
        for block in message.get("content") or ():
            asked = block.get("input") if isinstance(block, dict) and block.get("type") == "tool_use" else None
            if isinstance(asked, dict) and isinstance(asked.get("prompt"), str) and asked.get("subagent_type"):
                self._asked[asked["prompt"]] = str(asked["subagent_type"])


def _add(recording: Recording, line: int, record: dict[str, Any], message: dict[str, Any]) -> Iterator[RecordedTurn]:
    at = seconds(record.get("timestamp"))
    content = message.get("content")
    said = str(plain_text(content))
    if record["type"] == "assistant":
        _add_reply(recording, line, record, message, at)
    elif has_results(content):
        add_results(recording, content, at)
    elif said.startswith(_INTERRUPTED):
        yield from recording.end("user_cancelled")
    # A summary takes the place of what was compacted, and notes of Claude Code's own are meta: the turn goes on.
    elif not (record.get("isMeta") or record.get("isCompactSummary") or said.startswith(_NOTIFICATION)):
        yield from recording.user(line)


def _add_reply(
    recording: Recording, line: int, record: dict[str, Any], message: dict[str, Any], at: float | None
) -> None:
    if message.get("model") == _NO_MODEL:
        if record.get("isApiErrorMessage"):
            recording.reply(line, at=at, failed=True)
        return
    add_response(recording, line, message, at)

"""Message lists and logs of requests with their responses, of OpenAI's and Anthropic's APIs alike.

A list of messages is a conversation. A log has a request a line, each with the whole conversation so far: a request
whose messages begin with those of an earlier one goes on with that conversation, and only what is new is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

from turnwatch.sources.json_values import BrokenLine, parse_json
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts import anthropic_messages, openai_chat, openai_responses
from turnwatch.sources.transcripts.open_conversations import OpenConversations
from turnwatch.sources.transcripts.recording import Recording, seconds
from turnwatch.sources.transcripts.records import read_records
from turnwatch.sources.wrong_shape import what_is_wrong

# Names under which logs and proxies keep the two bodies, and what the lines say beside them.
_REQUESTS: Final = ("request", "request_body", "req", "body", "input", "kwargs")
_RESPONSES: Final = ("response", "response_body", "resp", "output", "completion")
_CONVERSATION_IDS: Final = ("conversation_id", "session_id", "thread_id", "conversation", "chat_id", "trace_id")
_AGENTS: Final = ("agent", "agent_name")
_TIMES: Final = ("timestamp", "created_at", "created", "time", "start_time", "ts")

_Add = Callable[[Recording, int, dict[str, Any], "float | None"], Iterator[RecordedTurn]]
_AddResponse = Callable[[Recording, int, dict[str, Any], "float | None"], None]


@dataclass(frozen=True, slots=True)
class _Api:
    claims: Callable[[object], bool]
    add: _Add
    claims_response: Callable[[dict[str, Any]], bool]
    add_response: _AddResponse


# The first that claims a message has it: chat messages claim all that the others do not.
_APIS: Final = (
    _Api(
        anthropic_messages.claims_message,
        anthropic_messages.add_message,
        anthropic_messages.claims_response,
        anthropic_messages.add_response,
    ),
    _Api(
        openai_responses.claims_item,
        openai_responses.add_item,
        openai_responses.claims_response,
        openai_responses.add_response,
    ),
    _Api(
        openai_chat.claims_message,
        openai_chat.add_message,
        openai_chat.claims_response,
        openai_chat.add_response,
    ),
)


def claims(record: object) -> bool:
    """Whether a parsed value is a message, a list of messages, or a logged request or response."""
    if isinstance(record, list):
        return any(_api_of(item) is not None or (isinstance(item, dict) and claims(item)) for item in record[:20])
    if not isinstance(record, dict):
        return False
    return _api_of(record) is not None or _parts(record) is not None


def read(stream: IO[bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of all conversations of a file, each when it is over."""
    log = _Log()
    for item in read_records(stream):
        if isinstance(item, BrokenLine):
            yield item
            continue
        line, value = item
        # A document may be a list of conversations or of log records as well as of messages.
        records = value if isinstance(value, list) and not any(map(_api_of, value[:20])) else [value]
        for record in records:
            try:
                yield from log.add(line, record)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                yield BrokenLine(line, f"a message that cannot be read: {what_is_wrong(error)}")
    yield from log.end()


@dataclass(frozen=True, slots=True)
class _Parts:
    request: dict[str, Any]
    messages: list[Any]
    response: dict[str, Any] | None


class _Log:
    def __init__(self) -> None:
        self._conversations = OpenConversations()
        self._lines: Recording | None = None

    def add(self, line: int, record: Any) -> Iterator[RecordedTurn]:
        if isinstance(record, list):
            record = {"messages": record}
        if not isinstance(record, dict):
            raise TypeError("no object")
        parts = _parts(record)
        if parts is None:
            yield from self._add_message_of_its_own(line, record)
            return
        response, named = parts.response, _conversation_id(record, parts)
        at = next(
            (at for each in (record, parts.request, response) if each and (at := _time_of(each)) is not None), None
        )
        recording, new = self._conversations.find(
            parts.messages,
            named=named,
            previous=parts.request.get("previous_response_id") or (response or {}).get("previous_response_id"),
            agent=_agent_of(record),
        )
        for message in new:
            api = _api_of(message)
            if api is not None:
                time = _time_of(message)
                yield from api.add(recording, line, message, at if time is None else time)
        if response is not None:
            _add_response(recording, line, parts, response, at)
        over = self._conversations.keep(
            recording,
            parts.messages,
            named=named,
            response_id=(response or {}).get("id"),
            answered=None if response is None else _is_response(response),
        )
        if over is not None:
            yield from over.end()

    def end(self) -> Iterator[RecordedTurn]:
        if self._lines is not None:
            yield from self._lines.end()
        for recording in self._conversations.all():
            yield from recording.end()

    def _add_message_of_its_own(self, line: int, message: dict[str, Any]) -> Iterator[RecordedTurn]:
        # With one message a line the file is one conversation.
        api = _api_of(message)
        if api is None:
            raise ValueError("neither messages nor a response")
        if self._lines is None:
            self._lines = self._conversations.new(_agent_of(message), _id_in(message))
        yield from api.add(self._lines, line, message, _time_of(message))


def _add_response(recording: Recording, line: int, parts: _Parts, response: dict[str, Any], at: float | None) -> None:
    recording.close_reply()
    for api in _APIS:
        if api.claims_response(response):
            api.add_response(recording, line, response, at)
            return
    recording.reply(line, model=str(parts.request.get("model") or ""), at=at, failed=True)


def _api_of(message: object) -> _Api | None:
    return next((api for api in _APIS if api.claims(message)), None)


def _parts(record: dict[str, Any]) -> _Parts | None:
    """The messages and the response in a logged record; None when it holds neither."""
    if _is_response(record):
        return _Parts({}, [], record)
    response = next((body for name in _RESPONSES if (body := _body(record.get(name))) is not None), None)
    if response is not None and not (_is_response(response) or "error" in response):
        response = None
    for request in (record, *(body for name in _REQUESTS if (body := _body(record.get(name))) is not None)):
        for name in ("messages", "input"):
            messages = request.get(name)
            if isinstance(messages, list) and any(_api_of(message) is not None for message in messages[:20]):
                return _Parts(request, messages, response)
        if response is not None and isinstance(request.get("input"), str):
            return _Parts(request, [{"role": "user", "content": request["input"]}], response)
    return _Parts({}, [], response) if response is not None and _is_response(response) else None


def _body(value: object) -> dict[str, Any] | None:
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = parse_json(value)
        except ValueError:
            return None
    if not isinstance(value, dict):
        return None
    inner = value.get("body")
    return _body(inner) if isinstance(inner, (dict, str)) else value


def _is_response(body: dict[str, Any]) -> bool:
    # A message of a list may look like a response of Anthropic's, but it has no usage.
    return any(api.claims_response(body) for api in _APIS) and (
        "usage" in body or "object" in body or "choices" in body
    )


def _conversation_id(record: dict[str, Any], parts: _Parts) -> str | None:
    for place in (record, parts.request, parts.response or {}):
        named = _id_in(place)
        if named is not None:
            return named
    # An id of a whole conversation; that of a request or response names no more than itself.
    identity = record.get("id")
    whole = parts.request is record and parts.response is None
    return str(identity) if whole and isinstance(identity, (str, int)) else None


def _id_in(place: dict[str, Any]) -> str | None:
    metadata = place.get("metadata")
    for source in (place, metadata if isinstance(metadata, dict) else {}):
        for name in _CONVERSATION_IDS:
            value = source.get(name)
            if isinstance(value, dict):
                value = value.get("id")
            if isinstance(value, (str, int)) and value != "" and not isinstance(value, bool):
                return str(value)
    return None


def _agent_of(record: dict[str, Any]) -> str:
    return next((str(record[name]) for name in _AGENTS if isinstance(record.get(name), str)), "")


def _time_of(record: dict[str, Any]) -> float | None:
    return next((at for name in _TIMES if (at := seconds(record.get(name))) is not None), None)

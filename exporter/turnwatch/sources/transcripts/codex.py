"""Rollouts of the Codex CLI: ``~/.codex/sessions/**/rollout-*.jsonl``.

Every line has a timestamp, a type and a payload: the session's metadata, the model of what follows, items as the
Responses API has them, and events, of which token_count says what the last reply used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

from turnwatch.core.events import Usage
from turnwatch.core.usage import read_usage
from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.openai_responses import add_item
from turnwatch.sources.transcripts.recording import Recording, plain_text, seconds
from turnwatch.sources.transcripts.records import read_records
from turnwatch.sources.wrong_shape import what_is_wrong

_TYPES: Final = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
# What Codex says to the model in the user's name.
_NOT_THE_USER: Final = ("<", "# AGENTS.md instructions")


def claims(record: object) -> bool:
    """Whether a parsed line is one of a rollout."""
    return isinstance(record, dict) and record.get("type") in _TYPES and isinstance(record.get("payload"), dict)


def read(stream: IO[bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of a rollout. A thread that another one started belongs to that one's conversation."""
    rollout = _Rollout()
    for item in read_records(stream):
        if isinstance(item, BrokenLine):
            yield item
            continue
        line, record = item
        if not claims(record):
            continue
        try:
            yield from rollout.add(line, record)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            yield BrokenLine(line, f"an event that cannot be read: {what_is_wrong(error)}")
    yield from rollout.recording.end()


class _Rollout:
    def __init__(self) -> None:
        self.recording = Recording("", "codex")
        self._model = ""
        self._used_so_far: object = None

    def add(self, line: int, record: dict[str, Any]) -> Iterator[RecordedTurn]:
        payload, at = record["payload"], seconds(record.get("timestamp"))
        match record["type"]:
            case "session_meta":
                # A resumed session may repeat the metadata.
                if not self.recording.conversation_id:
                    self.recording = _recording_of(payload)
            case "turn_context":
                self._model = str(payload.get("model") or self._model)
            case "response_item":
                yield from self._add_item(line, payload, at)
            case "event_msg":
                yield from self._add_event(line, payload, at)

    def _add_item(self, line: int, item: dict[str, Any], at: float | None) -> Iterator[RecordedTurn]:
        if item.get("role") == "user" and str(plain_text(item.get("content"))).lstrip().startswith(_NOT_THE_USER):
            return
        yield from add_item(self.recording, line, item, at)
        self.recording.name_model(self._model, "openai")

    def _add_event(self, line: int, event: dict[str, Any], at: float | None) -> Iterator[RecordedTurn]:
        kind, info = event.get("type"), event.get("info")
        if _is_of_the_user(event) and self.recording.is_open:
            # The message is also among the items, before this event or after it.
            yield from self.recording.user(line)
        elif kind == "turn_aborted":
            yield from self.recording.end("user_cancelled" if event.get("reason") == "interrupted" else None)
        elif kind in ("task_complete", "turn_complete"):
            # The request for which the task was given up is nowhere else.
            if event.get("error"):
                self.recording.close_reply()
                self.recording.reply(line, model=self._model, provider="openai", at=at, failed=True)
            yield from self.recording.end()
        # The event comes again when nothing but the rate limits changed.
        elif kind == "token_count" and isinstance(info, dict) and info.get("total_token_usage") != self._used_so_far:
            self._used_so_far = info.get("total_token_usage")
            self.recording.add_usage(_usage_of(info.get("last_token_usage")))
            self.recording.close_reply()


def _is_of_the_user(event: dict[str, Any]) -> bool:
    """Whether an event says that the user said something; it has had two names."""
    item = event.get("item")
    return event.get("type") == "user_message" or (
        event.get("type") == "item_completed" and isinstance(item, dict) and item.get("type") == "UserMessage"
    )


def _recording_of(meta: dict[str, Any]) -> Recording:
    thread = str(meta.get("id") or "")
    source = meta.get("source")
    started_by = source.get("subagent") if isinstance(source, dict) else None
    if started_by is None:
        return Recording(thread, "codex")
    spawn = started_by.get("thread_spawn") if isinstance(started_by, dict) else None
    if not isinstance(spawn, dict):
        spawn = {}
    # The nickname is another one each time.
    role = spawn.get("agent_role")
    return Recording(str(spawn.get("parent_thread_id") or thread), str(role or "subagent"), turn_prefix=thread)


def _usage_of(last: object) -> Usage | None:
    if not isinstance(last, dict):
        return None
    return read_usage(
        None,
        input_tokens=last.get("input_tokens"),
        output_tokens=last.get("output_tokens"),
        cache_read_tokens=last.get("cached_input_tokens"),
        cache_write_tokens=last.get("cache_write_input_tokens"),
        reasoning_tokens=last.get("reasoning_output_tokens"),
    )

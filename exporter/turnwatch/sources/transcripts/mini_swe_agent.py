"""Trajectories of mini-swe-agent: ``*.traj.json``, one JSON document a run.

A list of messages, which have an ``extra`` beside what the model saw: of a reply its actions, the whole response and
its cost; of an observation the return code; of a complaint about a wrong format the reply that had it, which is not
among the messages. Calls are tool calls, or in text; then user messages are observations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any, Final

from turnwatch.core.usage import read_usage
from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import Recording, plain_text, seconds
from turnwatch.sources.transcripts.records import read_runs

_AGENT: Final = "mini-swe-agent"
_TOOL: Final = "bash"
# Version 1 did not write down what it took for the action.
_ACTION_IN_TEXT: Final = re.compile(r"```(?:bash|sh|mswea_bash_command)\n(.*?)\n```", re.DOTALL)
_STOP_REASONS: Final = {
    "Submitted": "final_answer",
    "LimitsExceeded": "max_iterations",
    "TimeExceeded": "max_seconds",
    "UserInterruption": "user_cancelled",
}


def claims(record: object) -> bool:
    """Whether a parsed document is a trajectory of mini-swe-agent."""
    return (
        isinstance(record, dict)
        and isinstance(record.get("messages"), list)
        and str(record.get("trajectory_format")).startswith(_AGENT)
    )


def read(stream: IO[bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The run of each document: one turn."""
    return read_runs(stream, claims, _turn_of, of=_AGENT, part="message")


def _turn_of(record: dict[str, Any], line: int, number: int) -> Iterator[RecordedTurn]:
    info: dict[str, Any] = record.get("info") or {}
    config: dict[str, Any] = info.get("config") or {}
    model = str((config.get("model") or {}).get("model_name") or "")
    recording = Recording(str(record.get("instance_id") or number), _AGENT)
    for message in record["messages"]:
        extra: dict[str, Any] = message.get("extra") or {}
        if message.get("role") == "assistant" or "response" in extra or "model_response" in extra:
            _add_reply(recording, line, message, extra, model)
        elif message.get("role") in ("user", "tool") and recording.is_open:
            _add_observation(recording, message, extra)
    yield from recording.end(_stop_reason(info, config.get("agent") or {}))


def _add_reply(recording: Recording, line: int, message: dict[str, Any], extra: dict[str, Any], model: str) -> None:
    response = extra.get("response")
    if not isinstance(response, dict):
        response = {}
    usage, cost, at = response.get("usage"), extra.get("cost"), seconds(extra.get("timestamp"))
    recording.close_reply()
    recording.reply(
        line,
        # The configured name has the provider in front, which prices are looked up by.
        model=str(model or response.get("model") or ""),
        usage=read_usage(usage) if usage else None,
        spend_usd=float(cost) if isinstance(cost, (int, float)) and cost > 0 else None,
        at=at,
    )
    of_the_model = message.get("role") == "assistant"
    said = plain_text(message.get("content")) if of_the_model else _said(response) or extra.get("model_response")
    actions = extra.get("actions") or (_in_text(said) if of_the_model else [])
    for action in actions:
        arguments = {name: value for name, value in action.items() if name != "tool_call_id"}
        recording.call(line, _TOOL, arguments, call_id=action.get("tool_call_id"), at=at)
    if not actions and isinstance(said, str):
        recording.text(said)


def _said(response: dict[str, Any]) -> str | None:
    choices = response.get("choices")
    message = choices[0].get("message") if isinstance(choices, list) and choices else None
    text = message.get("content") if isinstance(message, dict) else None
    return text if isinstance(text, str) else None


def _in_text(said: object) -> list[dict[str, Any]]:
    found = _ACTION_IN_TEXT.findall(said) if isinstance(said, str) else []
    # More than one is a wrong format, and none of them was run.
    return [{"command": found[0].strip()}] if len(found) == 1 else []


def _add_observation(recording: Recording, message: dict[str, Any], extra: dict[str, Any]) -> None:
    call_id = message.get("tool_call_id")
    output = extra.get("raw_output")
    recording.result(
        str(call_id) if call_id else None,
        plain_text(message.get("content")) if output is None else output,
        failed=extra.get("returncode") not in (0, None) or bool(extra.get("exception_info")),
        at=seconds(extra.get("timestamp")),
    )


def _stop_reason(info: dict[str, Any], limits: dict[str, Any]) -> str:
    status = str(info.get("exit_status") or "")
    spent, allowed = (info.get("model_stats") or {}).get("instance_cost"), limits.get("cost_limit")
    if status == "LimitsExceeded" and spent and allowed and spent >= allowed:
        return "max_usd"
    return _STOP_REASONS.get(status, "error" if status else "unknown")

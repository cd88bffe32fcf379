"""Trajectories of SWE-agent: ``*.traj``, one JSON document a run.

Each step has the action, a command line, and the observation it brought; info has the exit status, and the tokens and
dollars of the run as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from turnwatch.core.events import Usage
from turnwatch.core.usage import token_count
from turnwatch.sources.json_values import BrokenLine, parse_json
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import Recording
from turnwatch.sources.transcripts.records import read_runs


def claims(record: object) -> bool:
    """Whether a parsed document is a trajectory of SWE-agent."""
    steps = record.get("trajectory") if isinstance(record, dict) else None
    return isinstance(steps, list) and all(isinstance(step, dict) and "action" in step for step in steps[:20])


def read(stream: IO[bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The run of each document: one turn, with a tool call for each action, called by the action's first word."""
    return read_runs(stream, claims, _turn_of, of="SWE-agent", part="step")


def _turn_of(record: dict[str, Any], line: int, number: int) -> Iterator[RecordedTurn]:
    steps = record["trajectory"]
    info: dict[str, Any] = record.get("info") or {}
    model, problem = _configuration(record)
    recording = Recording(problem or str(number), "swe-agent")
    shares = _shares(info.get("model_stats"), len(steps))
    for step, (usage, spend) in zip(steps, shares, strict=True):
        recording.close_reply()
        recording.reply(line, model=model, usage=usage, spend_usd=spend)
        action = str(step.get("action") or "").strip()
        if action:
            recording.call(line, action.split(maxsplit=1)[0], {"command": action})
            recording.result(None, step.get("observation"))
        else:
            recording.text(str(step.get("response") or ""))
    yield from recording.end(_stop_reason(str(info.get("exit_status") or "")))


def _shares(stats: object, steps: int) -> list[tuple[Usage | None, float | None]]:
    """What each step used: equal parts, for the file says it of the run only."""
    if not isinstance(stats, dict) or not steps:
        return [(None, None)] * steps
    sent, received = token_count(stats.get("tokens_sent")), token_count(stats.get("tokens_received"))
    cost = stats.get("instance_cost", stats.get("total_cost"))
    spend = float(cost) / steps if isinstance(cost, (int, float)) and cost > 0 else None
    if not sent and not received:
        return [(None, spend)] * steps
    inputs, outputs = _parts(sent or 0, steps), _parts(received or 0, steps)
    return [(Usage(*tokens), spend) for tokens in zip(inputs, outputs, strict=True)]


def _parts(total: int, steps: int) -> list[int]:
    return [total * (step + 1) // steps - total * step // steps for step in range(steps)]


def _configuration(record: dict[str, Any]) -> tuple[str, str]:
    """The model and the problem's id, which only the configuration says, as JSON in JSON."""
    text = record.get("replay_config")
    try:
        config: dict[str, Any] = parse_json(text) if isinstance(text, str) else text or {}
        agent, problem = config.get("agent") or {}, config.get("problem_statement") or {}
        return str((agent.get("model") or {}).get("name") or ""), str(
            problem.get("id") or record.get("instance_id") or ""
        )
    except (ValueError, AttributeError):
        return "", ""


def _stop_reason(status: str) -> str:
    # "submitted (exit_cost)": stopped, and what there was got submitted.
    for sign, reason in {
        "exit_cost": "max_usd",
        "exit_total_execution_time": "max_seconds",
        "exit_command_timeout": "max_seconds",
        "exit_context": "max_turn_tokens",
        "skipped": "unknown",
        "exit": "error",
        "submitted": "final_answer",
    }.items():
        if sign in status.lower():
            return reason
    return "unknown"

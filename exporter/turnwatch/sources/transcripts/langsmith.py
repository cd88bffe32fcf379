"""Exports of LangSmith: runs with a run_type, as JSON lines, a list, or nested in child_runs.

https://docs.langchain.com/langsmith/run-data-format
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import IO, Any, Final

from turnwatch.core.events import MISSING, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.usage import read_usage
from turnwatch.sources.json_values import BrokenLine, parse_json
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import plain_text, seconds
from turnwatch.sources.transcripts.traces import Step, Traces, read_traces

# The names under which LangSmith itself looks for the thread of a run.
_THREADS: Final = ("session_id", "thread_id", "conversation_id")


def claims(record: object) -> bool:
    """Whether a parsed value is a run, or a list or page of runs."""
    return any(
        isinstance(run.get("run_type"), str) and ("id" in run or "run_id" in run) for run in _runs_in(record)[:20]
    )


def read(stream: IO[bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of an export: one a trace."""
    return read_traces(stream, _runs_in, _add, part="a run")


def _runs_in(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        value = value["runs"] if isinstance(value.get("runs"), list) else [value]
    return [run for run in value if isinstance(run, dict)] if isinstance(value, list) else []


def _add(traces: Traces, line: int, run: dict[str, Any], trace_id: str | None = None) -> Iterator[RecordedTurn]:
    identity = str(run.get("id") or run["run_id"])
    trace = traces.of(str(trace_id or run.get("trace_id") or identity))
    metadata = (run.get("extra") or {}).get("metadata") or {}
    if trace.conversation_id is None:
        trace.conversation_id = next((str(metadata[name]) for name in _THREADS if metadata.get(name)), None)
    if identity == trace.trace_id or (trace_id is None and not run.get("parent_run_id")):
        trace.agent = str(run.get("name") or "")
        trace.stop_reason = _stop_reason(run)
    step = _step(line, run, metadata)
    if step is not None:
        yield from traces.add(trace, step)
    for child in run.get("child_runs") or ():
        yield from _add(traces, line, child, trace.trace_id)


def _step(line: int, run: dict[str, Any], metadata: dict[str, Any]) -> Step | None:
    started, ended = seconds(run.get("start_time")), seconds(run.get("end_time"))
    order = (started or 0.0, str(run.get("dotted_order") or ""))
    if run["run_type"] == "tool":
        result, failed = _result(run)
        return Step(
            order, line, str(run["name"]), _arguments(run.get("inputs")), result, failed, started=started, ended=ended
        )
    if run["run_type"] != "llm":
        return None
    cost = run.get("total_cost")
    return Step(
        order,
        line,
        failed=bool(run.get("error")),
        model=str(metadata.get("ls_model_name") or ""),
        provider=str(metadata.get("ls_provider") or ""),
        usage=_usage(run),
        spend_usd=float(cost) if cost else None,
        started=started,
        ended=ended,
    )


def _arguments(inputs: object) -> object:
    """A tool's arguments. LangChain's tracer keeps them as the text of a Python or JSON object under "input"."""
    if not isinstance(inputs, dict):
        return MISSING
    text = inputs.get("input")
    if set(inputs) != {"input"} or not isinstance(text, str):
        return inputs
    for parse in (parse_json, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return inputs


def _result(run: dict[str, Any]) -> tuple[Evidence | None, bool]:
    if run.get("error"):
        return Evidence.of(run["error"]), True
    output = run.get("outputs")
    if output is None:
        return None, False
    failed = False
    if isinstance(output, dict) and set(output) == {"output"}:
        output = output["output"]
    # A ToolMessage, plain or as LangChain serialises objects.
    message = output.get("kwargs", output) if isinstance(output, dict) else None
    if isinstance(message, dict) and "content" in message and ("tool_call_id" in message or "status" in message):
        failed = message.get("status") == "error"
        output = plain_text(message["content"])
    return Evidence.of(output), failed


def _usage(run: dict[str, Any]) -> Usage | None:
    outputs = run.get("outputs") or {}
    found = read_usage(outputs)
    generations = outputs.get("generations")
    while found is None and isinstance(generations, list) and generations:
        generations = generations[0]
    if found is None and isinstance(generations, dict):
        message = generations.get("message") or {}
        found = read_usage(message.get("kwargs", message))
    # What the tracer could not read may still have been counted by LangSmith.
    return found or read_usage({name: run.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")})


def _stop_reason(run: dict[str, Any]) -> str:
    error = str(run.get("error") or "")
    if error:
        return "max_iterations" if "RecursionError" in error or "Recursion limit" in error else "error"
    return "final_answer" if run.get("end_time") else "unknown"

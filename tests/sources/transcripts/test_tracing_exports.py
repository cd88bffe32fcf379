"""Exports of LangSmith and Langfuse: traces as turns, threads as conversations, tokens and dollars."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.sources.transcripts.judgement import judged

Record = dict[str, Any]
CALLS = [("search", {"q": "cheap flights"}, "no flights")] * 6


def at(second: int) -> str:
    return f"2026-01-05T10:{second // 60:02}:{second % 60:02}.000000"


def langsmith(trace: str, calls: list[tuple[str, Any, str]] = CALLS) -> list[Record]:
    def run(number: int, kind: str, name: str, **more: Any) -> Record:
        identity = trace if not number else f"{trace}-{number}"
        return {
            "id": identity,
            "trace_id": trace,
            "parent_run_id": trace if number else None,
            "dotted_order": f"{number:04}",
            "run_type": kind,
            "name": name,
            "start_time": at(number),
            "end_time": at(number + 1),
            "error": None,
            "extra": {"metadata": {"thread_id": "thread-9"}},
            **more,
        }

    runs = [run(0, "chain", "travel-agent", inputs={}, outputs={})]
    for tool, args, answer in calls:
        message = {"usage_metadata": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}}
        runs.append(
            run(
                len(runs),
                "llm",
                "ChatOpenAI",
                outputs={"generations": [[{"message": {"lc": 1, "kwargs": message}}]]},
                extra={"metadata": {"thread_id": "thread-9", "ls_model_name": "gpt-4o", "ls_provider": "openai"}},
            )
        )
        output = {"output": {"content": answer, "type": "tool", "tool_call_id": "c", "status": "success"}}
        runs.append(run(len(runs), "tool", tool, inputs={"input": repr(args)}, outputs=output))
    return runs


def langfuse(trace: str, calls: list[tuple[str, Any, str]] = CALLS) -> list[Record]:
    def observation(number: int, kind: str, name: str, **more: Any) -> Record:
        return {
            "id": f"{trace}-{number}",
            "traceId": trace,
            "parentObservationId": f"{trace}-0" if number else None,
            "type": kind,
            "name": name,
            "startTime": at(number) + "Z",
            "endTime": at(number + 1) + "Z",
            "level": "DEFAULT",
            "sessionId": "thread-9",
            **more,
        }

    found = [observation(0, "AGENT", "travel-agent")]
    for tool, args, answer in calls:
        usage = {"input": 100, "output": 10, "total": 110}
        found.append(observation(len(found), "GENERATION", "chat", model="gpt-4o", usageDetails=usage))
        found.append(observation(len(found), "TOOL", tool, input=args, output=answer))
    return found


def blob_storage(trace: str) -> list[Record]:
    def renamed(observation: Record) -> Record:
        return {
            {
                "model": "provided_model_name",
                "traceId": "trace_id",
                "parentObservationId": "parent_observation_id",
                "startTime": "start_time",
                "endTime": "end_time",
                "sessionId": "session_id",
                "usageDetails": "usage_details",
            }.get(key, key): json.dumps(value) if isinstance(value, dict) and key == "input" else value
            for key, value in observation.items()
        }

    return [renamed(each) for each in langfuse(trace)]


def shuffled(records: list[Record]) -> list[Record]:
    return random.Random(7).sample(records, len(records))


def nested() -> list[Record]:
    root, *children = langsmith("t1")
    return [{**root, "child_runs": children}]


def trace_with_observations() -> list[Record]:
    own = [{k: v for k, v in each.items() if k != "sessionId"} for each in langfuse("t1")]
    return [{"id": "t1", "name": "travel-agent", "sessionId": "thread-9", "observations": own}]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(langsmith("t1"), id="langsmith, lines"),
        pytest.param(shuffled(langsmith("t1")), id="langsmith, in no order"),
        pytest.param([langsmith("t1")], id="langsmith, a list"),
        pytest.param([json.dumps({"runs": langsmith("t1")}, indent=1)], id="langsmith, a page"),
        pytest.param(nested(), id="langsmith, nested"),
        pytest.param(langfuse("t1"), id="langfuse, lines"),
        pytest.param(shuffled(langfuse("t1")), id="langfuse, in no order"),
        pytest.param([{"data": langfuse("t1"), "meta": {"page": 1}}], id="langfuse, a page"),
        pytest.param(trace_with_observations(), id="langfuse, a trace"),
        pytest.param(blob_storage("t1"), id="langfuse, blob storage"),
    ],
)
def test_a_trace_is_a_turn_judged_as_by_hand(scanned, by_hand, records):
    (turn,), unread = scanned(*records)
    assert unread == []
    assert turn.verdict is not None
    assert judged(turn) == judged(by_hand(CALLS))
    assert (turn.conversation_id, turn.turn_id, turn.agent) == ("thread-9", "t1", "travel-agent")
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (600, 60)
    assert turn.spend_usd
    assert (turn.unpriced_models, turn.stop_reason) == (set(), "final_answer")


@pytest.mark.parametrize("make", [langsmith, langfuse])
def test_traces_of_one_thread_are_turns_of_one_conversation(scanned, make):
    turns, _ = scanned(*shuffled([*make("t1", CALLS[:2]), *make("t2", CALLS[:1])]))
    assert sorted((turn.turn_id, turn.conversation_id, turn.tool_calls) for turn in turns) == [
        ("t1", "thread-9", 2),
        ("t2", "thread-9", 1),
    ]


def test_errors_of_tools_and_of_the_run_are_seen(scanned):
    runs = langsmith("t1")
    for run in runs:
        if run["run_type"] == "tool":
            run.update(error="ToolException('no such flight')", outputs=None)
    runs[0]["error"] = "GraphRecursionError('Recursion limit of 25 reached')"
    (turn,), _ = scanned(*runs)
    assert "error_stall" in {verdict.kind for verdict in turn.verdicts}
    assert turn.stop_reason == "max_iterations"
    observations = langfuse("t1")
    for observation in observations:
        if observation["type"] == "TOOL":
            observation.update(level="ERROR", statusMessage="no such flight", output=None)
    (turn,), _ = scanned(*observations)
    assert "error_stall" in {verdict.kind for verdict in turn.verdicts}


def test_dollars_that_the_export_knows_are_taken(scanned):
    runs = langsmith("t1", CALLS[:2])
    runs[1]["total_cost"] = runs[3]["total_cost"] = "0.25"
    (turn,), _ = scanned(*runs)
    assert turn.spend_usd == pytest.approx(0.5)


@pytest.mark.parametrize("make", [langsmith, langfuse])
def test_a_broken_line_is_named_and_the_rest_is_read(scanned, make):
    records = make("t1", CALLS[:2])
    (turn,), unread = scanned(records[0], "{broken", *records[1:])
    assert turn.tool_calls == 2
    assert unread == ["2: not JSON at column 2: Expecting property name enclosed in double quotes"]

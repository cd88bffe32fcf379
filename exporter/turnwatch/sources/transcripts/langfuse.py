"""Exports of Langfuse: observations, alone or in their traces.

The API writes them in camelCase, the blob storage export in snake_case.
https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

from turnwatch.core.events import MISSING
from turnwatch.core.evidence import Evidence
from turnwatch.core.usage import read_usage
from turnwatch.sources.json_values import BrokenLine, parse_json
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import plain_text, seconds
from turnwatch.sources.transcripts.traces import Step, Traces, read_traces

_TYPES: Final = frozenset(
    {"SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"}
)


def claims(record: object) -> bool:
    """Whether a parsed value is an observation, a trace with observations, or a list or page of either."""
    return any(map(_is_observation, _observations_in(record)[:20]))


def read(stream: IO[bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of an export: one a trace."""
    return read_traces(
        stream, lambda value: filter(_is_observation, _observations_in(value)), _add, part="an observation"
    )


def _is_observation(record: dict[str, Any]) -> bool:
    return record.get("type") in _TYPES and bool(_field(record, "traceId")) and "id" in record


def _observations_in(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("observations"), list):
            # The observations of a trace do not repeat what the trace says of itself.
            about = {"traceName": value.get("name"), "sessionId": _field(value, "sessionId")}
            return [{**about, **each} for each in value["observations"] if isinstance(each, dict)]
        value = value["data"] if isinstance(value.get("data"), list) else [value]
    if not isinstance(value, list):
        return []
    found: list[dict[str, Any]] = []
    for each in value:
        if isinstance(each, dict):
            found.extend(_observations_in(each) if isinstance(each.get("observations"), list) else [each])
    return found


def _field(record: dict[str, Any], name: str) -> Any:
    """A field by its name in the API or in the blob storage export."""
    value = record.get(name)
    return value if value is not None else record.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def _add(traces: Traces, line: int, observation: dict[str, Any]) -> Iterator[RecordedTurn]:
    trace = traces.of(str(_field(observation, "traceId")))
    session = _field(observation, "sessionId")
    if session:
        trace.conversation_id = str(session)
    failed = observation.get("level") == "ERROR"
    if not _field(observation, "parentObservationId"):
        trace.agent = str(_field(observation, "traceName") or observation.get("name") or "")
        trace.stop_reason = "error" if failed else "final_answer" if _field(observation, "endTime") else "unknown"
    started, ended = seconds(_field(observation, "startTime")), seconds(_field(observation, "endTime"))
    order = (started or 0.0, "")
    if observation["type"] == "TOOL":
        arguments = _value(observation.get("input"))
        output = _value(observation.get("output"))
        if failed and output is None:
            output = _field(observation, "statusMessage")
        yield from traces.add(
            trace,
            Step(
                order,
                line,
                str(observation["name"]),
                MISSING if arguments is None else arguments,
                None if output is None else Evidence.of(plain_text(output)),
                failed,
                started=started,
                ended=ended,
            ),
        )
    elif observation["type"] == "GENERATION":
        cost = _field(observation, "totalCost") or _field(observation, "calculatedTotalCost")
        cost = cost or (_value(_field(observation, "costDetails")) or {}).get("total")
        yield from traces.add(
            trace,
            Step(
                order,
                line,
                failed=failed,
                model=str(observation.get("model") or _field(observation, "providedModelName") or ""),
                usage=read_usage(_value(_field(observation, "usageDetails")) or observation.get("usage")),
                spend_usd=float(cost) if cost else None,
                started=started,
                ended=ended,
            ),
        )


def _value(value: object) -> Any:
    """A field that the export may have written as JSON in JSON."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value

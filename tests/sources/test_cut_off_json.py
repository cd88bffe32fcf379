"""What is whole of a value that was cut off, wherever the cut is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from turnwatch.sources.cut_off_json import open_brackets, whole_records

SPAN = {"name": 'a "quoted" {bracket] \\', "attributes": [{"key": "k", "value": {"stringValue": "v"}}], "events": []}
MESSAGE = {"role": "user", "content": [{"type": "text", "text": "a ] and a }"}, {"type": "tool_use", "input": {}}]}
CALL = {"tool": "t", "args": {"calls": [{"tool": "not one"}], "data": [[1, 2], [3]]}, "result": "r", "messages": [{}]}


def kept_of(text: str) -> Any:
    return whole_records(text, 0, open_brackets(text))


def otlp(spans: list[Any]) -> Any:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": spans}]}]}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("document", "record", "records_of"),
    [
        pytest.param(otlp, SPAN, lambda of: of["resourceSpans"][0]["scopeSpans"][0]["spans"], id="OTLP"),
        pytest.param(lambda each: each, MESSAGE, lambda of: of, id="a list of messages"),
        pytest.param(lambda each: {"model": "m", "messages": each}, MESSAGE, lambda of: of["messages"], id="messages"),
        pytest.param(lambda each: {"id": "t", "calls": each}, CALL, lambda of: of["calls"], id="a trajectory"),
    ],
)
def test_every_whole_record_is_kept_and_no_half_one(
    document: Callable[[list[Any]], Any], record: Any, records_of: Callable[[Any], list[Any]], indent: int | None
):
    text = json.dumps(document([record] * 3), indent=indent)
    kept = []
    for cut in range(1, len(text)):
        assert open_brackets(text[:cut])
        whole = kept_of(text[:cut])
        try:
            records = records_of(whole)
        except (TypeError, LookupError):
            assert not kept, "once there was one, there is one"
            continue
        assert records == [record] * len(records)
        kept.append(len(records))
    assert kept == sorted(kept), "a later cut leaves more"
    assert set(kept) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({"name": "s", "attributes": {"a": 1}, "events": [{"name": "e"}, {"name": "f"}]}, id="a span"),
        pytest.param({"type": "assistant", "message": MESSAGE}, id="a line of Claude Code"),
        pytest.param({"id": "1", "inputs": {"messages": [MESSAGE, MESSAGE]}}, id="a run of LangSmith"),
    ],
)
def test_of_one_record_nothing_is_kept(record: Any):
    text = json.dumps(record)
    assert {kept_of(text[:cut]) is None for cut in range(1, len(text))} == {True}


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"calls": [1]}', '{"calls": [1}', "]", '{"calls": [{"a": 1]', '{"calls": [nonsense, {}, '],
)
def test_what_is_whole_or_broken_is_not_mended(text: str):
    assert kept_of(text) is None

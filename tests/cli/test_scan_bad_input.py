"""What ``turnwatch scan`` says of input that it cannot read, or not to its end, and what it reads all the same."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.cli.scanning import HEALTHY, RUNS, STUCK, rows, scan

GOOD = HEALTHY + STUCK


@pytest.mark.parametrize(
    ("content", "turns", "said"),
    [
        pytest.param(GOOD.encode("utf-16"), 2, [], id="UTF-16"),
        pytest.param(b"\xfe\xff" + GOOD.encode("utf-16-be"), 2, [], id="UTF-16 the other way round"),
        pytest.param(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode(), 2, [], id="BOM and CRLF"),
        pytest.param(GOOD.encode() + b"\0" * 512, 2, ["3: not JSON"], id="NUL bytes behind"),
        pytest.param(b"\0" * 512 + b"\n" + GOOD.encode(), 2, ["1: not JSON"], id="NUL bytes before"),
        pytest.param(GOOD.encode() + b"\xff\xfe\n" + HEALTHY.encode(), 3, ["3: not JSON"], id="no UTF-8"),
        pytest.param(GOOD.encode()[:-30], 2, ["2: cut off"], id="cut off"),
        pytest.param(b"garbage\n" + GOOD.encode() + b"[1, 2]\n7\n", 2, ["1:", "4:", "5:"], id="garbage between"),
        pytest.param(b"", 0, ["empty"], id="empty"),
        pytest.param(b"\n\n", 0, ["not a format that turnwatch reads"], id="blank"),
        pytest.param(b"<html></html>", 0, ["not a format that turnwatch reads"], id="HTML"),
        pytest.param(b'{"name": "demo"}', 0, ["not a format that turnwatch reads"], id="other JSON"),
        pytest.param(bytes(range(256)) * 16, 0, ["not a format that turnwatch reads"], id="binary"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0", 0, ["not a format that turnwatch reads"], id="a picture"),
        pytest.param(gzip.compress(GOOD.encode() * 99, mtime=0)[:-9], 0, ["ended before"], id="gzip cut off"),
        pytest.param(b"\x1f\x8bnot gzip at all", 0, ["compression method"], id="no gzip"),
        pytest.param(json.dumps([json.loads(HEALTHY)], indent=2).encode(), 1, [], id="an indented list"),
        pytest.param(b"[" * 100_000, 0, ["not a format that turnwatch reads"], id="nested too deep"),
    ],
)
def test_bad_input_gets_a_clear_line_and_the_rest_is_read(tmp_path: Path, content: bytes, turns: int, said: list[str]):
    bad, good = tmp_path / "bad", tmp_path / "good.jsonl"
    bad.write_bytes(content)
    good.write_text(HEALTHY)
    result = scan(bad, good, "--json")
    assert result.exit_code == (2 if said else 0), result.stderr
    read = [row for row in rows(result) if row["source"] == str(bad)]
    assert len(read) == turns or "ended before" in said
    assert [row["conversation_id"] for row in rows(result) if row["source"] == str(good)] == ["healthy"]
    lines = result.stderr.splitlines()
    assert len(lines) == len(said)
    for line, part in zip(lines, said, strict=True):
        assert line.startswith(f"turnwatch: {bad}:")
        assert part in line


def test_of_a_file_that_is_broken_all_over_a_few_places_are_named(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    file.write_text(HEALTHY + "broken\n" * 5000)
    lines = scan(file, "--json").stderr.splitlines()
    assert len(lines) == 21
    assert lines[-1] == f"turnwatch: {file}: 4980 more places that cannot be read"


def test_several_formats_in_one_folder_are_all_read(tmp_path: Path):
    (tmp_path / "runs.jsonl").write_text(RUNS)
    span = {
        "name": "chat gpt-4o",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "start_time": "2026-01-05T10:00:00Z",
        "end_time": "2026-01-05T10:00:01Z",
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"},
    }
    (tmp_path / "spans.jsonl").write_text(json.dumps(span) + "\n")
    (tmp_path / "chat.json").write_text(
        json.dumps([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    )
    (tmp_path / "README").write_text("notes")
    result = scan(tmp_path, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    by_file = sorted((Path(row["source"]).name, row["iterations"]) for row in rows(result))
    assert by_file == [("chat.json", 1), ("runs.jsonl", 1), ("runs.jsonl", 4), ("runs.jsonl", 8), ("spans.jsonl", 1)]


def test_a_name_with_control_characters_does_nothing_to_the_terminal(tmp_path: Path):
    file = tmp_path / "a\x1b[2J.jsonl"
    file.write_text("broken\n")
    result = scan(file)
    assert "\x1b" not in result.stderr + result.stdout
    assert "a�[2J.jsonl" in result.stderr


def otlp_of(*calls_: dict[str, Any]) -> str:
    """An OTLP JSON document of one turn."""
    agent = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "1",
        "name": "invoke_agent demo",
        "startTimeUnixNano": "1767600000000000000",
        "endTimeUnixNano": "1767600100000000000",
        "attributes": attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "demo"}),
    }
    spans = [
        {
            **agent,
            "spanId": f"{number:016x}",
            "parentSpanId": agent["spanId"],
            "name": "execute_tool s",
            "startTimeUnixNano": str(1767600000000000000 + number),
            "endTimeUnixNano": str(1767600000000000001 + number),
            "attributes": attributes(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": call["tool"],
                    "gen_ai.tool.call.arguments": json.dumps(call["args"]),
                    "gen_ai.tool.call.result": call["result"],
                }
            ),
        }
        for number, call in enumerate(calls_, 2)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [agent, *spans]}]}]}, indent=1)


def attributes(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


@pytest.mark.parametrize("where", ["the file", "its folder"])
@pytest.mark.parametrize("kind", ["OTLP", "messages", "a trajectory"])
def test_of_a_document_that_was_cut_off_what_is_whole_is_judged(tmp_path: Path, kind: str, where: str):
    call = {"tool": "s", "args": {"q": 1}, "result": "none"}
    if kind == "OTLP":
        text = otlp_of(*[call] * 6)
    elif kind == "a trajectory":
        text = json.dumps({"trajectory_id": "t", "agent": "demo", "calls": [call] * 6}, indent=1)
    else:
        said: list[dict[str, Any]] = [{"role": "user", "content": "Find it"}]
        for number in range(6):
            ask = {"id": f"c{number}", "type": "function", "function": {"name": "s", "arguments": '{"q": 1}'}}
            said.append({"role": "assistant", "content": None, "tool_calls": [ask]})
            said.append({"role": "tool", "tool_call_id": f"c{number}", "content": "none"})
        text = json.dumps(said, indent=1)
    file = tmp_path / "run.json"
    file.write_text(text[: int(len(text) * 0.88)])
    result = scan(file if where == "the file" else tmp_path, "--json")
    assert result.exit_code == 2
    (turn,) = rows(result)
    assert turn["tool_calls"] == 5
    assert [loop["severity"] for loop in turn["loops"]] == ["warn", "stuck"]
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"turnwatch: {file}:1: cut off in line ")
    assert line.endswith("the JSON that begins here is not closed; what is whole before that was read")


@pytest.mark.parametrize("where", ["the file", "its folder"])
@pytest.mark.parametrize("indent", [1, None], ids=["over several lines", "on one line"])
def test_of_a_compressed_document_that_was_cut_off_what_is_whole_is_judged(
    tmp_path: Path, indent: int | None, where: str
):
    calls = [{"tool": "s", "args": {"q": hashlib.sha256(b"%d" % n).hexdigest()}, "result": "none"} for n in range(4000)]
    text = json.dumps({"trajectory_id": "t", "agent": "demo", "calls": calls}, indent=indent)
    packed = gzip.compress(text.encode(), mtime=0)
    file = tmp_path / "run.json.gz"
    file.write_bytes(packed[: len(packed) // 2])
    result = scan(file if where == "the file" else tmp_path, "--json")
    assert result.exit_code == 2
    (turn,) = rows(result)
    assert 1000 < turn["tool_calls"] < 3000
    cut, ended = result.stderr.splitlines()
    assert cut.startswith(f"turnwatch: {file}:1: cut off ")
    assert cut.endswith("what is whole before that was read")
    assert "ended before the end-of-stream marker" in ended


@pytest.mark.parametrize("name", ["spans.pb", "spans.OTLP", "spans.binpb.gz"])
def test_a_body_in_a_folder_that_is_cut_off_is_named(tmp_path: Path, name: str):
    (tmp_path / "runs.jsonl").write_text(RUNS)
    body = ParseDict(json.loads(otlp_of({"tool": "s", "args": {}, "result": ""})), ExportTraceServiceRequest())
    whole = body.SerializeToString()
    (tmp_path / "other.bin").write_bytes(whole[:-9])
    (tmp_path / name).write_bytes(gzip.compress(whole[:-9]) if name.endswith(".gz") else whole[:-9])
    result = scan(tmp_path, "--json")
    assert result.exit_code == 2
    assert {row["source"] for row in rows(result)} == {str(tmp_path / "runs.jsonl")}
    (line,) = result.stderr.splitlines()
    assert line == f"turnwatch: {tmp_path / name}: no OTLP request, as its name says it is, or not all of one"


def test_a_file_of_which_nothing_is_whole_says_where_it_is_cut_off(tmp_path: Path):
    file = tmp_path / "run.json"
    file.write_text('{"messages": [{"role": "user", "con')
    (line,) = scan(file).stderr.splitlines()
    assert "not a format that turnwatch reads" in line
    assert "line 1 is cut off at column 35" in line

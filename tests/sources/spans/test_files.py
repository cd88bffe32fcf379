"""Files of spans: which format, what cannot be read, and the turns in them."""

import gzip
import io
import json
import lzma
import random

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.sources.spans.corpus import Case, cases

from turnwatch.sources.spans import file_turns
from turnwatch.sources.spans.file_turns import iter_turns
from turnwatch.sources.spans.files import Problem, format_of, read_spans_file

CASE = Case("vercel_ai_v6", "loop")
CLAUDE = Case("claude_agent_sdk_native", "loop")
SPANS = 14
LOOP = (6, 5, 7)


@pytest.fixture
def problems():
    return []


def found(*paths, on_problem=None):
    turns = iter_turns(paths, on_problem=on_problem) if on_problem else iter_turns(paths)
    return [(one.turn.tool_calls, one.turn.repeats, one.turn.iterations) for one in turns]


def lines(case=CASE):
    return case.files("sdk-json")[0].read_text().splitlines()


@pytest.mark.parametrize(
    ("way", "format"),
    [("sdk-json", "sdk-json"), ("otlp-protobuf", "otlp-protobuf"), ("otlp-json", "otlp-json")],
)
def test_a_files_format_is_told_by_its_content(way, format, tmp_path):
    copy = tmp_path / "without-a-telling-name"
    copy.write_bytes(CASE.files(way)[0].read_bytes())
    assert format_of(copy) == format
    assert len(list(read_spans_file(copy))) == SPANS
    assert found(copy) == [LOOP]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("way", ["sdk-json", "otlp-protobuf", "otlp-json"])
def test_compressed_files_are_read_like_plain_ones(way, compress, tmp_path):
    copy = tmp_path / "spans"
    copy.write_bytes(compress(CASE.files(way)[0].read_bytes()))
    assert format_of(copy) == way
    assert found(copy) == [LOOP]


def test_a_compressed_file_that_is_cut_off_does_not_keep_the_others_from_being_read(tmp_path, problems):
    whole = CASE.files("sdk-json")[0]
    noise = json.dumps({"noise": random.Random(1).randbytes(200_000).hex()}).encode()
    (tmp_path / "cut").write_bytes(gzip.compress(whole.read_bytes() + noise)[:-20_000])
    assert found(tmp_path / "cut", whole, on_problem=problems.append) == [LOOP]
    assert {problem.path.name for problem in problems} == {"cut"}


def test_other_files_are_no_span_files(tmp_path):
    for name, content in {
        "metrics.pb": next(iter(CLAUDE.folder.glob("loop.otlp-metrics-*.pb"))).read_bytes(),
        "truth.json": (CASE.folder / "loop.truth.json").read_bytes(),
        "noise": random.Random(1).randbytes(4000),
        "empty": b"",
        "text": b"hello\nworld\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        assert format_of(tmp_path / name) is None, name


def test_spans_printed_by_the_console_exporter_are_read(tmp_path):
    printed = tmp_path / "console.txt"
    printed.write_text("\n".join(json.dumps(json.loads(line), indent=4) for line in lines()) + "\n")
    assert found(printed) == [LOOP]


def test_the_collectors_file_exporter_writes_a_request_a_line(tmp_path):
    body = json.loads(CASE.files("otlp-json")[0].read_text())
    half = tmp_path / "traces.json"
    half.write_text("\n".join([json.dumps(body), json.dumps(body)]))
    assert found(half) == [LOOP]


def test_a_pretty_printed_request_is_read(tmp_path):
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(json.loads(CASE.files("otlp-json")[0].read_text()), indent=2))
    assert found(pretty) == [LOOP]


@pytest.mark.parametrize("broken_line", [1, 5, SPANS + 1])
def test_a_broken_line_is_named_and_the_rest_is_read(broken_line, tmp_path, problems):
    broken = lines()
    broken.insert(broken_line - 1, '{"name": "cut off in the mid')
    file = tmp_path / "broken.jsonl"
    file.write_text("\n".join(broken))
    assert found(file, on_problem=problems.append) == [LOOP]
    assert [(problem.path, problem.line) for problem in problems] == [(file, broken_line)]
    assert str(problems[0]).startswith(f"{file}:{broken_line}: cut off at column 28: ")


def test_an_object_that_is_no_span_is_named(tmp_path, problems):
    file = tmp_path / "mixed.jsonl"
    file.write_text("\n".join([*lines(), '{"some": "thing"}', '{"context": {"trace_id": "zz"}}']))
    assert found(file, on_problem=problems.append) == [LOOP]
    assert [problem.line for problem in problems] == [SPANS + 1, SPANS + 2]


def test_a_cut_off_body_is_named(tmp_path, problems):
    file = tmp_path / "cut.pb"
    file.write_bytes(CASE.files("otlp-protobuf")[0].read_bytes()[:-7])
    assert list(read_spans_file(file, problems.append)) == []
    assert problems == [Problem(file, 0, "not an OTLP traces request")]


def test_a_turn_may_be_spread_over_files_in_any_order(tmp_path):
    shuffled = lines()
    random.Random(3).shuffle(shuffled)
    parts = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for number, part in enumerate(parts):
        part.write_text("\n".join(shuffled[number::2]))
    assert found(*parts) == [LOOP]


def test_a_folder_with_the_same_spans_in_several_formats_counts_them_once():
    folder = CASE.folder
    numbers = sorted(found(folder))
    singles = sorted(
        turn for case in cases() if case.dialect == CASE.dialect for turn in found(*case.files("sdk-json"))
    )
    assert numbers == singles


def test_a_turn_names_the_file_and_the_line_in_which_it_begins():
    (one,) = iter_turns(CASE.files("sdk-json"))
    assert one.path == CASE.files("sdk-json")[0]
    assert one.line == 1
    assert one.turn.ended


def request(number, attributes, parent=0, name="span", scope="my.scope", span_id=0):
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    span = {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{span_id or number + 1:016x}",
        "name": name,
        "startTimeUnixNano": str(10**18 + number * 1000),
        "endTimeUnixNano": str(10**18 + number * 1000 + span_id + 1),
        "attributes": pairs,
    }
    if parent:
        span["parentSpanId"] = f"{parent:016x}"
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": [span]}]}]})


TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


def test_turns_whose_agent_never_comes_end_while_the_file_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(file_turns, "_SORTED_SPANS", 20)
    monkeypatch.setattr(file_turns, "_BATCH_SPANS", 10)
    monkeypatch.setattr(file_turns, "_SPANS_A_SECOND", 2)
    file = tmp_path / "orphans.jsonl"
    file.write_text("\n".join(request(number, TOOL, parent=10**6 + number) for number in range(2000)))
    read = []

    class Watched(io.FileIO):
        def readline(self, size=-1):
            read.append(1)
            return super().readline(size)

    turns = iter_turns([file], formats={file: "otlp-json"}, open_=Watched)
    behind = [len(read) - number for number, _ in enumerate(turns)]
    assert len(behind) == 2000
    assert max(behind) < 400


def test_of_spans_that_play_no_part_those_are_followed_that_calls_hang_under(tmp_path):
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-bot"}
    http = {"http.request.method": "GET"}
    lines = [
        request(0, TOOL, parent=102, span_id=101),
        request(0, http, parent=103, span_id=102, scope="opentelemetry.instrumentation.httpx"),
        request(0, http, parent=104, span_id=103),
        request(0, http, parent=104, span_id=105),
        request(0, agent, span_id=104, name="invoke_agent support-bot"),
    ]
    file = tmp_path / "spans.jsonl"
    for order in (lines, lines[::-1]):
        file.write_text("\n".join(order))
        (one,) = iter_turns([file])
        assert (one.turn.agent, one.turn.tool_calls) == ("support-bot", 1)


def test_one_span_that_cannot_be_read_keeps_no_other_of_its_request_from_being_read(tmp_path, problems):
    body = json.loads(request(0, TOOL))
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.insert(0, {**spans[0], "traceId": "no id"})
    file = tmp_path / "spans.jsonl"
    file.write_text(json.dumps(body))
    assert found(file, on_problem=problems.append) == [(1, 0, 0)]
    assert [str(problem) for problem in problems] == [
        f"{file}:1: a span that cannot be read: a field has a value that it cannot have in its format"
    ]


def test_traces_logs_and_metrics_may_stand_in_one_file(tmp_path, problems):
    file = tmp_path / "all.jsonl"
    file.write_text("\n".join(['{"resourceMetrics": []}', request(0, TOOL), '{"resourceLogs": []}']))
    assert found(file, on_problem=problems.append) == [(1, 0, 0)]
    assert problems == []


def test_logs_beside_the_spans_are_read_as_well():
    spans, logs = CLAUDE.files("otlp-protobuf"), sorted(CLAUDE.folder.glob("loop.otlp-logs-*.pb"))
    assert {format_of(file) for file in logs} == {"otlp-logs"}
    assert found(*spans, *logs) == [LOOP]
    assert found(*spans) == [(6, 0, 7)]


def test_a_long_turn_has_the_conversation_that_only_its_agents_span_names(tmp_path):
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("my.agent")
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support-bot",
        "gen_ai.conversation.id": "c-17",
    }
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with tracer.start_as_current_span("invoke_agent support-bot", attributes=agent):
        for number in range(30):
            with tracer.start_as_current_span("chat gpt-4o", attributes=chat):
                pass
            arguments = {"gen_ai.tool.call.arguments": f'{{"page": {number}}}'}
            with tracer.start_as_current_span("execute_tool search", attributes={**tool, **arguments}):
                pass
    file = tmp_path / "spans.jsonl"
    file.write_text("\n".join(span.to_json(indent=None) for span in exporter.get_finished_spans()), encoding="utf-8")
    (found,) = iter_turns([file])
    assert (found.turn.agent, found.turn.conversation_id) == ("support-bot", "c-17")
    assert (found.turn.iterations, found.turn.tool_calls) == (30, 30)
    assert found.turn.conversation is not None

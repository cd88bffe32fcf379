"""Files of spans: which format, what cannot be read, and the turns in them."""

import gzip
import json
import lzma
import random

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.sources.spans.corpus import Case, cases

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
    assert [problem.path.name for problem in problems] == ["cut"]


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
    assert str(problems[0]) == f"{file}:{broken_line}: not JSON"


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


def test_a_turn_names_the_file_in_which_it_begins():
    (one,) = iter_turns(CASE.files("sdk-json"))
    assert one.path == CASE.files("sdk-json")[0]
    assert one.turn.ended


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

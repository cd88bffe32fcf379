"""``turnwatch scan``: its tables, its exit codes, its JUnit report, and what it says of bad input."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typer.testing import CliRunner

from turnwatch.cli.scan import scan_app


def scan(*arguments: object, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(scan_app, [str(argument) for argument in arguments])


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def calls(number: int, result: str = "[]", tool: str = "search_orders", **more: object) -> list[dict[str, object]]:
    return [{"tool": tool, "args": {"customer_id": "C-7841"}, "result": result, **more}] * number


def run(name: str, made: list[dict[str, object]], **more: object) -> str:
    return json.dumps({"trajectory_id": name, "framework": "demo", "calls": made, **more}) + "\n"


HEALTHY = run("healthy", calls(1))
STUCK = run("stuck", calls(8, tokens_in=1_000_000, tokens_out=0, model="gpt-4o", cost_usd=2.5))
POLLING = run("polling", [{**each, "result": f"{n} of 9 done"} for n, each in enumerate(calls(4, tool="job_status"))])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    file = tmp_path / "runs.jsonl"
    file.write_text(HEALTHY + STUCK + POLLING)
    return file


# Tables


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_tables_fit_the_terminal_and_say_what_it_comes_to(runs: Path, columns: int):
    shown = scan(runs, columns=columns)
    assert max(map(len, shown.stdout.splitlines())) <= columns
    text = " ".join(shown.stdout.split())
    assert re.search(r"runs.jsonl:2 stale_repeat.* 1-4 of 8 4", text)
    assert re.search(r"demo 3 1 13 10 4 \$20.00", text)
    assert re.search(r"search_\S+ 9 7 7 4.* job_\S+ 4 3", text)
    assert "3 turns, 13 tool calls, 10 of them repeats; 1 turn stuck." in text
    assert "A guard that stops at the first stuck verdict would have saved 4 tool calls and $10.00." in text
    assert "A rule that only counts identical calls (more than 2 in a turn) flags 2 turns, 1 of them not stuck." in text


def test_in_a_narrow_terminal_names_are_folded_at_their_marks_and_few_counts_shown(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    tool = "search_customer_orders_by_date"
    file.write_text(run("long", calls(8, tool=tool), agent="support-escalation-agent-of-europe"))
    for columns in (10, 40):
        printed = scan(file, columns=columns).stdout
        assert max(map(len, printed.splitlines())) <= 40
        assert re.search(r"agent +turns +stuck +wasted\b", printed)
        agents, tools = printed.split("Agents")[1].split("Tools")
        assert re.findall(r"^ ([a-z-]+)", agents, re.MULTILINE)[1:] == [
            "support-",
            "escalation-",
            "agent-of-",
            "europe",
        ]
        assert "".join(re.findall(r"^ ([a-z_]+)", tools, re.MULTILINE)[1:]) == tool
        assert "…" not in printed


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path):
    for folder in ("a/x", "b/x", "c"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "runs.jsonl").write_text(STUCK)
    (tmp_path / "other.jsonl").write_text(STUCK)
    text = scan(tmp_path, columns=120).stdout
    assert {line.split()[0] for line in text.splitlines() if "stale_repeat" in line} == {
        "a/x/runs.jsonl:1", "b/x/runs.jsonl:1", "c/runs.jsonl:1", "other.jsonl:1"
    }  # fmt: skip


def test_of_very_many_turns_the_worst_are_shown(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(run(f"r{n}", calls(4 + n % 7, tool=f"tool{n % 30}")) for n in range(100)))
    shown = scan(file).stdout
    assert len(re.findall("stale_repeat", shown)) == 10
    assert len(re.findall("1-4 of 10", shown)) == 10
    assert "and 90 other turns with a loop or identical calls" in shown
    assert "and 22 other tools" in shown


def test_in_a_transcript_a_loop_begins_on_the_line_of_its_first_call(tmp_path: Path):
    said: list[dict[str, Any]] = [{"role": "user", "content": "Find it"}]
    for number, page in enumerate([0, 1, 1, 1, 1, 1]):
        call = {"id": f"c{number}", "type": "function"}
        function = {"name": "search", "arguments": json.dumps({"page": page})}
        said.append({"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]})
        said.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"page {page}"})
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(map(json.dumps, said)))
    (turn,) = rows(scan(file, "--json"))
    assert turn["line"] == 1
    assert [(loop["severity"], loop["first_call"]) for loop in turn["loops"]] == [("warn", 2), ("stuck", 2)]
    assert turn["loop_lines"] == [4, 4]
    assert "chat.jsonl:4" in scan(file).stdout


# Exit codes


def test_the_exit_codes_are_in_the_help():
    explained = " ".join(scan("--help").stdout.replace("│", " ").split())
    assert "Exit codes: 0; 1 with --fail-on-loop and a stuck turn, or one that repeats calls" in explained


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--fail-on-loop"], 2)])
def test_where_there_is_no_turn_a_check_does_not_pass(tmp_path: Path, arguments: list[str], code: int):
    (tmp_path / "notes.md").write_text("# notes\n")
    result = scan(tmp_path, *arguments)
    assert result.exit_code == code
    assert "turnwatch: no turn of an agent was found" in result.stderr


def without_arguments(number: int) -> list[dict[str, object]]:
    return [{"tool": "search_orders", "result": "[]"}] * number


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--fail-on-loop"], 2)])
def test_where_no_call_could_be_judged_a_check_does_not_pass(tmp_path: Path, arguments: list[str], code: int):
    file = tmp_path / "blind.jsonl"
    file.write_text(run("blind", without_arguments(2)))
    result = scan(file, *arguments)
    assert result.exit_code == code
    assert "2 calls carried no arguments and could not be judged." in result.stdout
    said = "turnwatch: none of the tool calls could be judged: none has arguments or an input hash\n"
    assert result.stderr == (said if code else "")


def test_one_call_that_could_be_judged_is_enough_for_a_check(tmp_path: Path):
    file = tmp_path / "half_blind.jsonl"
    file.write_text(run("blind", without_arguments(2)) + HEALTHY)
    assert scan(file, "--fail-on-loop").exit_code == 0


def test_turns_without_tool_calls_pass_a_check(tmp_path: Path):
    file = tmp_path / "talk.jsonl"
    file.write_text(run("talk", []))
    assert scan(file, "--fail-on-loop").exit_code == 0


def without_results(number: int) -> str:
    return run("unseen", [{"tool": "search_orders", "args": {"customer_id": "C-1"}}] * number)


@pytest.mark.parametrize(("number", "code"), [(2, 0), (187, 1)])
def test_repeated_calls_fail_a_check_where_no_result_is_known(tmp_path: Path, number: int, code: int):
    file, out = tmp_path / "unseen.jsonl", tmp_path / "report.xml"
    file.write_text(without_results(number) + HEALTHY)
    result = scan(file, "--fail-on-loop", "--junit", out)
    assert result.exit_code == code
    said = "turnwatch: 1 turn with repeated calls whose results are not known\n"
    assert result.stderr == (said if code else "")
    assert report(out).attrib["failures"] == str(code)


# JUnit


def report(path: Path) -> ElementTree.Element:
    root = ElementTree.parse(path).getroot()
    (suite,) = root
    cases = list(suite)
    assert (root.tag, suite.tag, {case.tag for case in cases}) == ("testsuites", "testsuite", {"testcase"})
    for element in (root, suite):
        assert int(element.attrib["tests"]) == len(cases)
        assert int(element.attrib["failures"]) == len(suite.findall("*/failure"))
        assert int(element.attrib["errors"]) == len(suite.findall("*/error"))
    assert {name for case in cases for name in case.attrib} == {"classname", "name", "time"}
    return suite


def test_the_junit_report_has_a_test_case_a_turn_and_fails_those_that_are_stuck(runs: Path, tmp_path: Path):
    out = tmp_path / "report.xml"
    runs.write_text(HEALTHY + "{broken\n" + STUCK)
    result = scan(runs, "--fail-on-loop", "--junit", out)
    assert result.exit_code == 2
    healthy, broken, stuck = report(out)
    assert (healthy.attrib["classname"], healthy.attrib["name"]) == ("demo", f"{runs}:1 healthy")
    assert len(healthy) == 0
    assert (broken.attrib["name"], broken[0].tag) == (f"{runs}:2", "error")
    assert broken[0].attrib["message"].startswith("not JSON")
    failure = stuck.find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "stale_repeat"
    assert failure.attrib["message"] == "stale_repeat of search_orders from call 1, detected at call 4"
    assert failure.text is not None
    for line in ("tool: search_orders", "first call: 1 (line 3)", "detected at call: 4", "wasted tool calls: 4"):
        assert line in failure.text.splitlines()


def test_the_junit_report_is_xml_whatever_names_there_are(tmp_path: Path):
    file, out = tmp_path / "runs.jsonl", tmp_path / "report.xml"
    file.write_text(run("<a&\x00\x1b[2J\ud800\"'>", calls(8, tool="]]>\x08\n\t<b>")))
    assert scan(file, "--junit", out).exit_code == 0
    (case,) = report(out)
    assert "<a&" in case.attrib["name"]
    assert "<b>" in case[0].attrib["message"]


def test_a_report_that_cannot_be_written_is_said_to_be_so(runs: Path, tmp_path: Path):
    result = scan(runs, "--junit", tmp_path / "nowhere" / "report.xml")
    assert "nowhere/report.xml: cannot be written: No such file" in str(result.exception)


# Bad input

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


def test_several_formats_in_one_folder_are_all_read(tmp_path: Path, runs: Path):
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
def test_a_body_in_a_folder_that_is_cut_off_is_named(tmp_path: Path, name: str, runs: Path):
    body = ParseDict(json.loads(otlp_of({"tool": "s", "args": {}, "result": ""})), ExportTraceServiceRequest())
    whole = body.SerializeToString()
    (tmp_path / "other.bin").write_bytes(whole[:-9])
    (tmp_path / name).write_bytes(gzip.compress(whole[:-9]) if name.endswith(".gz") else whole[:-9])
    result = scan(tmp_path, "--json")
    assert result.exit_code == 2
    assert {row["source"] for row in rows(result)} == {str(runs)}
    (line,) = result.stderr.splitlines()
    assert line == f"turnwatch: {tmp_path / name}: no OTLP request, as its name says it is, or not all of one"


def test_a_file_of_which_nothing_is_whole_says_where_it_is_cut_off(tmp_path: Path):
    file = tmp_path / "run.json"
    file.write_text('{"messages": [{"role": "user", "con')
    (line,) = scan(file).stderr.splitlines()
    assert "not a format that turnwatch reads" in line
    assert "line 1 is cut off at column 35" in line

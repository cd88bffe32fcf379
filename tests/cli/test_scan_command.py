"""``turnwatch scan``: its tables, its exit codes, and its JUnit report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.scanning import HEALTHY, RUNS, STUCK, calls, rows, run, scan


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    file = tmp_path / "runs.jsonl"
    file.write_text(RUNS)
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

"""Files through ``turnwatch scan``: its output and its exit codes."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from turnwatch.cli import app_for
from turnwatch.sources import json_values
from turnwatch.sources.inputs import Unread
from turnwatch.sources.scan import ScannedTurn
from turnwatch.sources.scan import scan as scan_paths
from turnwatch.sources.spans import files as span_files

FIELDS = {
    "source", "turn_id", "conversation_id", "agent", "iterations", "tool_calls", "repeats", "duplicates",
    "missing_arguments", "tools", "loops", "tokens", "spend_usd", "unpriced_models", "wasted_tool_calls", "wasted_usd",
    "stop_reason",
}  # fmt: skip


def scan(*arguments: object, code: int = 0) -> tuple[list[dict[str, Any]], str]:
    words = ["scan", *map(str, arguments)]
    run = CliRunner(env={"COLUMNS": "80"}).invoke(app_for(words), words)
    assert run.exit_code == code, (run.stderr, run.exception)
    if "--json" in arguments:
        return [json.loads(line) for line in run.stdout.splitlines()], run.stderr
    return [], run.stdout + run.stderr


def trajectory(name: str, calls: int, result: str = "[]") -> str:
    call = {"tool": "search_orders", "args": {"customer_id": "C-7841"}, "result": result}
    return json.dumps({"trajectory_id": name, "framework": "demo", "calls": [call] * calls})


@pytest.fixture
def looping(tmp_path: Path) -> Path:
    file = tmp_path / "runs.jsonl"
    file.write_text(trajectory("healthy", 1) + "\n" + trajectory("stuck", 8) + "\n")
    return file


def test_one_object_a_turn_with_the_documented_fields(looping: Path):
    healthy, stuck = scan(looping, "--json")[0]
    assert set(stuck) >= FIELDS
    assert (healthy["conversation_id"], healthy["tool_calls"], healthy["loops"]) == ("healthy", 1, [])
    assert (stuck["tool_calls"], stuck["repeats"], stuck["duplicates"]) == (8, 7, 6)
    assert stuck["loops"][-1] == {
        "kind": "stale_repeat",
        "tool": "search_orders",
        "first_call": 1,
        "detected_call": 4,
        "severity": "stuck",
    }
    assert (stuck["wasted_tool_calls"], stuck["tokens"], stuck["spend_usd"]) == (4, None, None)


def test_each_turn_says_what_it_asked_of_each_tool(tmp_path: Path):
    search = {"tool": "search", "args": {"q": 1}, "result": "[]"}
    run = {"trajectory_id": "a", "calls": [search] * 6 + [{"tool": "read", "args": {"path": "a"}, "error": "gone"}]}
    other = {"trajectory_id": "b", "calls": [{**search, "result": number} for number in range(2)]}
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps(run) + "\n" + json.dumps(other) + "\n")

    one, two = scan(file, "--json")[0]

    assert one["tools"] == {
        "search": {"calls": 6, "repeats": 5, "same": 5, "errors": 0, "wasted": 2},
        "read": {"calls": 1, "repeats": 0, "same": 0, "errors": 1, "wasted": 1},
    }
    assert two["tools"] == {"search": {"calls": 2, "repeats": 1, "same": 0, "errors": 0, "wasted": 0}}


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files_are_read_by_content(looping: Path, tmp_path: Path, suffix: str, pack: Any):
    packed = tmp_path / f"packed{suffix}"
    packed.write_bytes(pack(looping.read_bytes()))
    assert [turn["conversation_id"] for turn in scan(packed, "--json")[0]] == ["healthy", "stuck"]


def test_fail_on_loop_exits_with_1_only_when_a_turn_is_stuck(looping: Path, tmp_path: Path):
    scan(looping, "--fail-on-loop", code=1)
    healthy = tmp_path / "healthy.jsonl"
    healthy.write_text(trajectory("healthy", 2))
    scan(healthy, "--fail-on-loop", code=0)


def test_a_broken_line_is_named_and_the_rest_is_read(looping: Path):
    looping.write_text(trajectory("a", 1) + "\n{broken\n" + trajectory("b", 1) + "\n")
    turns, errors = scan(looping, "--json", code=2)
    assert [turn["conversation_id"] for turn in turns] == ["a", "b"]
    assert f"{looping}:2: not JSON" in errors


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"# just text\n", "not a format that turnwatch reads"),
        (bytes(range(256)) * 16, "not a format that turnwatch reads"),
        (gzip.compress(b'{"trajectory_id": "x", "calls": []}' * 500, mtime=0)[:60], "ended before"),
    ],
    ids=["empty", "text", "binary", "cut gzip"],
)
def test_a_named_file_that_cannot_be_read_gets_one_clear_line(
    looping: Path, tmp_path: Path, content: bytes, reason: str
):
    bad = tmp_path / "bad.bin"
    bad.write_bytes(content)
    turns, errors = scan(bad, looping, "--json", code=2)
    assert len(turns) == 2
    assert [line for line in errors.splitlines() if "bad.bin" in line and reason in line]
    assert "Traceback" not in errors


def test_a_missing_file_gets_one_clear_line(tmp_path: Path):
    _, errors = scan(tmp_path / "nothing.jsonl", "--json", code=2)
    assert "nothing.jsonl: No such file or directory" in errors


def test_other_files_in_a_folder_are_passed_over(looping: Path, tmp_path: Path):
    (tmp_path / "README.md").write_text("# notes\n")
    assert len(scan(tmp_path, "--json")[0]) == 2


def test_the_table_fits_eighty_columns_and_says_what_was_wasted(looping: Path):
    _, text = scan(looping)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "2 turns, 9 tool calls, 7 of them repeats; 1 turn stuck." in text
    assert "would have saved 4 tool calls." in text


def test_a_format_can_be_forced(looping: Path):
    assert len(scan(looping, "--json", "--format", "trajectories")[0]) == 2
    turns, errors = scan(looping, "--json", "--format", "spans", code=2)
    assert turns == []
    assert f"{looping}:1: neither an SDK span nor an OTLP traces request" in errors


def test_thresholds_come_from_a_settings_file(looping: Path, tmp_path: Path):
    config = tmp_path / "turnwatch.yaml"
    config.write_text("detect: {max_identical_calls: 5}\n")
    assert scan(looping, "--json", "--config", config)[0][1]["duplicates"] == 3
    config.write_text("detect: {max_identical_cals: 5}\n")
    words = ["scan", str(looping), "--config", str(config)]
    errors = str(CliRunner().invoke(app_for(words), words).exception)
    assert "max_identical_cals" in errors
    assert f"{config}, line 1" in errors


def test_a_folder_without_a_turn_is_not_passed_over_in_silence(tmp_path: Path):
    assert "no turn of an agent was found" in scan(tmp_path)[1]


def test_a_call_without_a_tool_is_said_to_have_none(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    file.write_text('{"trajectory_id": "t", "calls": [{"name": "grep"}]}\n')
    assert f"{file}:1: call 1 has no tool, and is passed over" in scan(file, code=2)[1]


@pytest.mark.parametrize("too_long", [1, 3])
def test_what_stands_behind_lines_that_are_too_long_is_read(
    too_long: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for module in (json_values, span_files):
        monkeypatch.setattr(module, "MAX_VALUE_BYTES", 2_000)
    file = tmp_path / "runs.jsonl"
    file.write_text(f"{json.dumps({'text': 'x' * 5_000})}\n" * too_long + trajectory("read", 1))
    *unread, turn = scan_paths([file])
    assert [each.line for each in unread if isinstance(each, Unread)] == list(range(1, too_long + 1))
    assert isinstance(turn, ScannedTurn)
    assert (turn.line, turn.state.tool_calls) == (too_long + 1, 1)


def test_lines_that_only_a_patient_parser_reads_are_read(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    cut_off = trajectory("cut\ud83d", 4, "half a pair \ud83d")
    assert "\\ud83d" in cut_off
    file.write_bytes(b"\xef\xbb\xbf" + cut_off.encode() + b"\n" + trajectory("plain", 1).encode())
    rows, errors = scan("--json", file)
    assert errors == ""
    assert [row["duplicates"] for row in rows] == [2, 0]
    assert rows[0]["loops"][-1]["severity"] == "stuck"


def test_names_in_files_are_shown_as_they_are(tmp_path: Path):
    call = {"tool": "[/b]\x1b[2Jsearch", "args": {"q": 1}, "result": "[]"}
    record = {"trajectory_id": "a", "framework": "[/i]", "agent": "[/i]bot", "calls": [call] * 8}
    file = tmp_path / "[red].jsonl"
    file.write_text(json.dumps(record) + "\n")
    shown = scan(file)[1]
    assert "[red].jsonl:1" in shown.replace("\n", "")
    assert "[/b]" in shown
    assert "\x1b" not in shown

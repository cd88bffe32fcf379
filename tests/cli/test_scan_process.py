"""``turnwatch scan`` as a process: standard input, a reader that goes away, Ctrl-C, a terminal, and its memory."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from terminals import read_to_end

COMMAND = [sys.executable, "-c", "from turnwatch.cli import main; main()", "scan"]
# How much memory its own process ever took, in kB, is not what it inherits from the one that started it.
AND_MEMORY = """
import atexit, re
from pathlib import Path
def say():
    print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
atexit.register(say)
"""
RUN = '{"trajectory_id": "run", "calls": [{"tool": "a", "args": {}, "result": "b"}]}\n'
SPANS = Path(__file__).parents[2] / "bench" / "inputs" / "spans_file.py"


def start(*arguments: object, **how: Any) -> subprocess.Popen[bytes]:
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], **how)


def test_standard_input_is_read_compressed_or_not():
    for content in (RUN.encode(), zlib.compress(RUN.encode(), wbits=31)):
        scan = start("-", "--json", stdin=subprocess.PIPE)
        out, errors = scan.communicate(content, timeout=60)
        assert (scan.returncode, errors) == (0, b"")
        assert json.loads(out)["source"] == "-"


@pytest.mark.untraced
@pytest.mark.parametrize("arguments", [["--json"], []], ids=["json", "table"])
def test_a_reader_that_goes_away_is_no_stuck_turn_and_nothing_to_talk_about(tmp_path: Path, arguments: list[str]):
    file = tmp_path / "runs.jsonl"
    file.write_text(RUN * 3000)
    scan = start(file, *arguments)
    assert scan.stdout is not None
    assert scan.stderr is not None
    if arguments:
        scan.stdout.readline()
    scan.stdout.close()
    errors = scan.stderr.read()
    scan.stderr.close()
    assert (scan.wait(60), errors) == (141, b"")


def test_it_can_be_interrupted(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    scan = start(pipe, "--json")
    with pipe.open("w") as writer:  # opens when scan reads
        writer.write(RUN)
        writer.flush()
        scan.send_signal(signal.SIGINT)
        out, errors = scan.communicate(timeout=60)
    assert (scan.returncode, out, errors) == (130, b"", b"")


def test_on_a_terminal_a_bar_names_the_file_and_leaves_the_output_alone(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    file.write_text(RUN * 10)
    ours, theirs = pty.openpty()
    scan = start(file, "--json", stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})
    os.close(theirs)
    shown = read_to_end(ours)
    os.close(ours)
    out, _ = scan.communicate(timeout=60)
    assert len([json.loads(line) for line in out.splitlines()]) == 10
    assert b"runs.jsonl" in shown
    size = f"{file.stat().st_size:,}"
    assert f"{size}/{size} bytes".encode() in re.sub(rb"\x1b\[[0-9;]*m", b"", shown)


def peak_mb(*arguments: object) -> tuple[float, bytes, list[str]]:
    script = f"import sys{AND_MEMORY}\nfrom turnwatch.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", script, "scan", *map(str, arguments)], capture_output=True, timeout=600, check=False
    )
    *errors, peak = run.stderr.decode().splitlines()
    return int(peak) / 1024, run.stdout, errors


@pytest.mark.heavy
@pytest.mark.parametrize("only_agents", [[], ["--only-agents"]], ids=["shop", "agents"])
def test_memory_does_not_grow_with_a_file_of_spans(tmp_path: Path, only_agents: list[str]):
    file = tmp_path / "spans.jsonl"
    subprocess.run([sys.executable, SPANS, file, "--megabytes", "60", *only_agents], check=True, timeout=300)
    peak, _, errors = peak_mb(file)
    assert errors == []
    assert peak < 180  # the parsed file would take 300 MB and more


@pytest.mark.heavy
def test_memory_does_not_grow_with_a_file_of_trajectories_or_of_one_list(tmp_path: Path):
    calls = [{"tool": "read", "args": {}, "result": "x"}]
    run = json.dumps({"trajectory_id": "run", "calls": calls, "task": [{"text": "x" * 100}] * 800})
    (tmp_path / "lines.jsonl").write_text(f"{run}\n" * 800)
    (tmp_path / "list.json").write_text("[" + ", ".join([run] * 800) + "]")
    for file in ("lines.jsonl", "list.json"):
        peak, out, errors = peak_mb(tmp_path / file, "--json")
        assert errors == []
        assert len(out.splitlines()) == 800
        assert peak < 140


@pytest.mark.heavy
def test_a_line_that_is_too_long_is_passed_over_in_bounded_memory(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    with file.open("w") as stream:
        stream.write(RUN)
        stream.write('{"trajectory_id": "long", "text": "')
        for _ in range(150):
            stream.write("x" * 1_000_000)
        stream.write('"}\n' + RUN)
    peak, out, errors = peak_mb(file, "--json")
    assert [json.loads(line)["line"] for line in out.splitlines()] == [1, 3]
    assert errors == [f"turnwatch: {file}:2: longer than 64 MB, passed over"]
    assert peak < 300

"""How commands end: output that cannot be written, files that cannot, signals, text that is not in UTF-8."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from rich.console import Console
from terminals import read_to_end, read_until
from typer.testing import CliRunner

from turnwatch.cli import app_for
from turnwatch.cli.json_text import json_text
from turnwatch.cli.reading_bar import ReadingBar
from turnwatch.errors import TurnwatchError

COMMANDS = {
    "scan": [],
    "scan --json": [],
    "tune": [],
    "tune --json": [],
    "backfill": ["--from", "2026-06-01"],
}
OTHERS = ["pack render --out", "pack check", "kill"]
"""Commands that read no runs. Those that end with a place want one."""
WRITING = [("scan", "--html"), ("scan", "--junit"), ("tune", "--out"), ("backfill", "--out")]

# The cursor is hidden while a bar is drawn, and must be there again afterwards.
_HIDE, _SHOW = b"\x1b[?25l", b"\x1b[?25h"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    file = tmp_path / "runs.jsonl"
    calls = [{"tool": "search", "args": {"q": 1}, "result": "[]"}] * 5
    file.write_text(json.dumps({"trajectory_id": "a", "agent": "日本 \u202e", "calls": calls}) + "\n", encoding="utf-8")
    return file


def run(*arguments: object) -> Result:
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(app_for(words), words)


def process(command: str, *arguments: object, **more: object) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-m", "turnwatch", *command.split(), *map(str, arguments), *COMMANDS[command]]
    return subprocess.run(words, timeout=60, stderr=subprocess.PIPE, check=False, **more)


@pytest.mark.untraced
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_standard_output_is_an_error_in_one_line(command: str, runs: Path):
    with Path("/dev/full").open("wb") as full:
        ended = process(command, runs, stdout=full)
    assert (ended.returncode, ended.stderr.count(b"Traceback")) == (2, 0)
    assert ended.stderr.splitlines()[-1].endswith(b"cannot be written: No space left on device")


def other(command: str, folder: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """The process of a command that reads no runs."""
    place = {"pack render --out": [str(folder / "pack")], "kill": ["c-17"]}.get(command, [])
    words = [sys.executable, "-m", "turnwatch", *command.split(), *place]
    environment = {**os.environ, "TURNWATCH_KILL_DIR": str(folder / "kills")}
    return subprocess.run(words, timeout=60, stderr=subprocess.PIPE, check=False, cwd=folder, env=environment, **more)


@pytest.mark.untraced
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", [*OTHERS, "--help", "--version"])
def test_a_full_standard_output_is_an_error_in_one_line_of_every_command(command: str, tmp_path: Path):
    with Path("/dev/full").open("wb") as full:
        ended = other(command, tmp_path, stdout=full)
    assert (ended.returncode, ended.stderr.count(b"Traceback")) == (2, 0)
    assert b"No space left on device" in ended.stderr.splitlines()[-1]


@pytest.mark.untraced
@pytest.mark.parametrize("command", [*OTHERS, "--help", "--version", "scan --help", "pack"])
def test_every_command_ends_when_nobody_reads_its_output(command: str, tmp_path: Path):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        ended = other(command, tmp_path, stdout=gone)
    assert (ended.returncode, ended.stderr.count(b"Traceback")) == (141, 0)


@pytest.mark.untraced
@pytest.mark.parametrize("command", ["scan", "scan --json", "pack check"])
def test_a_closed_standard_output_is_no_fault(command: str, runs: Path):
    words = [*command.split(), *([str(runs)] if command.startswith("scan") else [])]
    shell = 'exec "$0" -m turnwatch "$@" >&-'
    ended = subprocess.run(["sh", "-c", shell, sys.executable, *words], timeout=60, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_an_empty_path_is_not_this_folder(monkeypatch: pytest.MonkeyPatch, runs: Path):
    monkeypatch.chdir(runs.parent)
    for command in ("scan", "tune", "backfill"):
        result = run(command, "")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "'PATH...': is empty" in result.stderr
    assert run("kill", "").exit_code == 2


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("pack render", "--out"),
        ("pack check", ""),
        ("pack test", ""),
        ("pack diff", ""),
        ("pack deploy", "--rules-folder"),
        ("serve", "--state-dir"),
    ],
)
def test_an_empty_folder_is_not_this_one(command: str, option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    words = [*command.split(), *([option] if option else [])]
    result = run(*words, "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{option or 'FOLDER'}': is empty" in result.stderr
    assert list(tmp_path.iterdir()) == []

    (tmp_path / "notes.txt").touch()
    result = run(*words, "notes.txt")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{option or 'FOLDER'}': notes.txt is a file" in result.stderr


@pytest.fixture
def as_anybody() -> list[str]:
    """What to put before a command so that it may not read and write everything, as root may."""
    if os.geteuid():
        return []
    words = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    if shutil.which("setpriv") is None or subprocess.run([*words, "true"], check=False).returncode:
        pytest.skip("root may read everything, and setpriv cannot take that from it here")
    return words


@pytest.mark.untraced
@pytest.mark.parametrize("command", ["scan --json", "tune --json", "backfill"])
def test_a_file_that_may_not_be_read_keeps_no_other_from_being_read(command: str, runs: Path, as_anybody: list[str]):
    secret = runs.parent / "secret.jsonl"
    secret.write_bytes(runs.read_bytes())
    secret.chmod(0)
    words = [*as_anybody, sys.executable, "-m", "turnwatch", *command.split(), secret, runs, *COMMANDS[command]]
    ended = subprocess.run(words, timeout=60, capture_output=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[0] == f"turnwatch: {secret}: Permission denied".encode()
    assert ended.stdout


@pytest.mark.untraced
@pytest.mark.parametrize(("command", "option"), WRITING)
def test_an_output_that_may_not_be_written_is_refused_before_anything_is_read(
    command: str, option: str, tmp_path: Path, as_anybody: list[str]
):
    closed = tmp_path / "closed"
    closed.mkdir(0o555)
    words = [*as_anybody, sys.executable, "-m", "turnwatch", command, "not-there.jsonl", option, closed / "report"]
    ended = subprocess.run(words, timeout=60, capture_output=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.decode() == f"turnwatch: {closed / 'report'}: cannot be written: Permission denied\n"


def test_a_file_that_cannot_be_written_is_named_in_one_line(tmp_path: Path):
    (tmp_path / "dashboards").write_text("a file, where a folder is wanted")
    result = run("pack", "render", "--out", tmp_path)
    assert isinstance(result.exception, TurnwatchError)
    assert str(result.exception) == f"{tmp_path / 'dashboards'}: File exists"


@pytest.mark.untraced
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_in_another_encoding_gets_what_it_can_hold(command: str, encoding: str, runs: Path):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    ended = process(command, runs, stdout=subprocess.PIPE, env=environment)
    assert (ended.returncode, ended.stderr.count(b"Traceback")) == (0, 0)
    assert ended.stdout


@pytest.mark.parametrize(("command", "option"), WRITING)
def test_what_is_read_is_not_written_over(command: str, option: str, runs: Path):
    before = runs.read_bytes()
    (runs.parent / "link").symlink_to(runs)
    for name in ("runs.jsonl", "link"):
        result = run(command, runs, option, runs.parent / name, *COMMANDS[command])
        assert result.exit_code != 0
        assert runs.read_bytes() == before


@pytest.mark.parametrize(("command", "option"), WRITING)
def test_runs_in_a_folder_that_is_read_are_not_written_over_but_a_report_is(command: str, option: str, runs: Path):
    before = runs.read_bytes()
    for path in (runs.parent, runs.parent / "*.jsonl"):
        result = run(command, path, option, runs, *COMMANDS[command], *(["--force"] if command == "tune" else []))
        assert str(result.exception) == f"{runs}: holds runs of agents, and would be written over"
        assert runs.read_bytes() == before
    report = runs.parent / "report"
    for _ in range(2):
        run(command, runs.parent, option, report, *COMMANDS[command])
        assert report.stat().st_size


@pytest.mark.parametrize(("command", "option"), WRITING)
@pytest.mark.parametrize(
    ("name", "fault"),
    [("gone/report", "No such file or directory"), (".", "Is a directory"), ("-", "name of a file")],
)
def test_an_output_that_cannot_be_is_refused_before_anything_is_read(
    command: str, option: str, name: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    result = run(command, "not-there.jsonl", option, name)
    assert isinstance(result.exception, TurnwatchError)
    assert fault in str(result.exception)
    assert "not-there" not in result.output


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_the_terminal_as_it_was(name: str, tmp_path: Path):
    pipe = tmp_path / "runs.jsonl"
    os.mkfifo(pipe)
    number = getattr(signal, name)
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(number, signal.SIG_DFL)  # under nohup the tests ignore SIGHUP, and so would what they start
        # What measures coverage has its own way to end on a signal.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        os.execve(sys.executable, [sys.executable, "-m", "turnwatch", "scan", str(pipe)], environment)
    seen = read_until(terminal, _HIDE)  # from then on it waits for somebody to write to the pipe
    os.kill(pid, number)
    seen += read_to_end(terminal)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + number, seen.decode()
    assert seen.rindex(_SHOW) > seen.rindex(_HIDE)


def test_a_signal_that_comes_as_the_bar_is_drawn_leaves_the_cursor_shown(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, enter = Terminal(), Console.__enter__

    def interrupted(console: Console) -> Console:
        entered = enter(console)
        if _HIDE.decode() in terminal.getvalue():
            monkeypatch.setattr(Console, "__enter__", enter)
            raise KeyboardInterrupt
        return entered

    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(Console, "__enter__", interrupted)
    with pytest.raises(KeyboardInterrupt), ReadingBar():
        pass
    assert terminal.getvalue().rindex(_SHOW.decode()) > terminal.getvalue().rindex(_HIDE.decode())


def test_file_names_in_another_encoding_are_named_as_well_as_can_be(runs: Path):
    odd = os.fsencode(runs.parent) + b"/caf\xe9.jsonl"
    os.rename(runs, odd)  # noqa: PTH104 a name in bytes
    ended = process("scan --json", runs.parent, stdout=subprocess.PIPE)
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["source"].endswith("caf?.jsonl")


def test_half_a_surrogate_pair_is_a_question_mark_in_json():
    value = {"a\ud800": ["\udcff", ("ok", 1, None)]}
    assert json.loads(json_text(value)) == {"a?": ["?", ["ok", 1, None]]}

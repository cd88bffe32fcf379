"""The examples at the end of every help: they are there, they parse, and those that need no server run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from turnwatch.cli import COMMANDS, app_for
from turnwatch.cli.examples import EXAMPLES

ALL = [example for examples in EXAMPLES.values() for example in examples]
# Of a command, what the others need: a server, a terminal, or minutes.
NEED_SERVERS = ("demo", "serve", "top", "pack diff", "pack deploy", "pack test")


def words(example: str) -> list[str]:
    """The arguments, as a shell would hand them over."""
    program, *arguments = shlex.split(example, comments=True)
    assert program == "turnwatch"
    return arguments


def commands() -> Iterator[str]:
    """Every command that there is, and the group of them all."""
    yield ""
    for name in COMMANDS:
        yield name
        group = typer.main.get_command(app_for([name])).commands[name]
        yield from (f"{name} {inner}" for inner in getattr(group, "commands", ()))


def test_every_command_has_two_or_three_examples_of_itself():
    assert set(EXAMPLES) == set(commands())
    for command, examples in EXAMPLES.items():
        assert len(examples) in (2, 3)
        assert all(example.startswith(f"turnwatch {command}".rstrip()) for example in examples)


@pytest.mark.parametrize("command", EXAMPLES)
def test_its_help_ends_with_them(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    arguments = [*command.split(), "--help"]
    lines = CliRunner().invoke(app_for(arguments), arguments).output.splitlines()
    told = [line.strip() for line in lines if line.strip()]
    assert told[-len(EXAMPLES[command]) - 1 :] == ["Examples:", *EXAMPLES[command]]


@pytest.mark.parametrize("example", ALL)
def test_an_example_parses(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    left = words(example)
    command = typer.main.get_command(app_for(left))
    context = None
    while True:
        context = command.make_context(command.name, left, parent=context)
        if not hasattr(command, "resolve_command"):
            break
        _, command, left = command.resolve_command(context, [*getattr(context, "_protected_args", ()), *context.args])


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    call = {"tool": "search", "args": {"q": 1}, "result": "none", "ts": 1767600000}
    run = json.dumps({"trajectory_id": "run-1", "agent": "demo", "calls": [call] * 6}) + "\n"
    for file in ("runs.jsonl", "traces/runs.jsonl", ".claude/projects/runs.jsonl"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(run)
    (tmp_path / "labels.csv").write_text("id,stuck\nrun-1,yes\n")
    (tmp_path / "turnwatch.yaml").write_text("on_loop: observe\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNWATCH_KILL_DIR", str(tmp_path / "kills"))
    return tmp_path


@pytest.mark.parametrize(
    "example", [each for each in ALL if not each.removeprefix("turnwatch ").startswith(NEED_SERVERS)]
)
def test_an_example_without_a_server_works(example: str, at_home: Path):
    arguments = [word.replace("~", str(at_home)) for word in words(example)]
    if "turnwatch-pack" in arguments and "render" not in arguments:
        made = ["pack", "render", "--out", "turnwatch-pack"]
        assert CliRunner().invoke(app_for(made), made).exit_code == 0
    if "--out turnwatch.yaml" in example:
        (at_home / "turnwatch.yaml").unlink()
    ran = CliRunner().invoke(app_for(arguments), arguments)
    # A loop is found, and no flag: nobody has been killed here.
    assert ran.exit_code == any(option in arguments for option in ("--fail-on-loop", "--undo")), ran.output
    for option in ("--out", "--html"):
        if option in arguments:
            assert (at_home / arguments[arguments.index(option) + 1]).exists()

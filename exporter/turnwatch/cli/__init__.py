"""The ``turnwatch`` command.

Each command is a module of this package with a typer app named ``<command>_app``. Only the module of the
command that was asked for is imported, so that one command neither waits for another's libraries nor needs them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.models import CommandInfo

from turnwatch.cli.ending import NOBODY_READS, ending_like_a_filter
from turnwatch.cli.examples import epilog_of
from turnwatch.errors import TurnwatchError

COMMANDS: Final[dict[str, str]] = {
    "demo": "Let a scripted agent get stuck and watch the page arrive, on real servers.",
    "scan": "Report repeats, loops, tokens and spend in traces and transcripts you already have.",
    "tune": "Try thresholds on your own runs, and suggest settings.",
    "backfill": "Write the metrics of recorded runs for a Prometheus, at the times of the runs.",
    "serve": "Receive OpenTelemetry traces and logs, count what agents do, and serve /metrics.",
    "top": "Watch agents live in the terminal: open turns, repeats, verdicts and spend.",
    "kill": "Stop a conversation that runs in another process.",
    "pack": "Render, check, test, compare and deploy the alert rules and dashboards.",
}
"""Every command and its line in the help."""

UNUSABLE_INPUT: Final = 2
"""Exit code for input or settings that cannot be used; also click's own for a wrong command line."""


def main() -> None:
    """Run the command line of this process and exit."""
    arguments = sys.argv[1:]
    if sys.stdout is None:  # closed by whoever started this
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 open to the end
    try:
        app_for(arguments)(args=arguments, prog_name="turnwatch")
    except (TurnwatchError, OSError) as error:  # the latter where the help cannot be written
        typer.echo(f"turnwatch: {error}", err=True)
        sys.exit(UNUSABLE_INPUT)
    except SystemExit as ended:
        # What prints help and faults of the command line has an exit code of its own for a reader that has gone.
        if isinstance(ended.__context__, BrokenPipeError):
            sys.exit(NOBODY_READS)
        raise


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return the typer app in which the command that ``arguments`` ask for is real and the others are names."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        epilog=epilog_of(""),
    )
    app.callback(help="Tells you that an LLM agent is stuck, from your own Prometheus.")(_common_options)
    asked_for = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, help_line in COMMANDS.items():
        if name == asked_for:
            _mount(app, name, help_line)
        else:
            app.command(name, help=help_line)(_only_a_name)
    return app


def _mount(app: typer.Typer, name: str, help_line: str) -> None:
    command: typer.Typer = getattr(importlib.import_module(f"turnwatch.cli.{name}"), f"{name}_app")
    if len(command.registered_commands) == 1 and command.registered_callback is None:
        command.registered_commands[0].name = name
        _complete(command.registered_commands[0], name)
        app.add_typer(command)
    else:
        for one in command.registered_commands:
            _complete(one, f"{name} {one.name}")
        app.add_typer(command, name=name, help=help_line, epilog=epilog_of(name))


def _complete(command: CommandInfo, name: str) -> None:
    """Give a command what all have: its help, which is what its function says and examples, and a way to end."""
    function = command.callback
    assert function is not None
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    # Where a line ends in the source is nothing to a terminal.
    command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    command.epilog = epilog_of(name)

    @functools.wraps(function)
    def ending_in_order(*args: Any, **kwargs: Any) -> None:
        with ending_like_a_filter():
            function(*args, **kwargs)

    command.callback = ending_in_order


def _only_a_name() -> None:
    """Stand in for a command that was not asked for."""


def _print_version(is_asked_for: bool) -> None:
    if is_asked_for:
        typer.echo(importlib.metadata.version("turnwatch"))
        raise typer.Exit


def _common_options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass

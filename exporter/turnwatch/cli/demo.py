"""``turnwatch demo``: a scripted agent gets stuck, and the page arrives."""

from __future__ import annotations

import json
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from turnwatch.cli.output_file import refuse_unfit
from turnwatch.demo.programs import ProgramsMissingError, find_programs
from turnwatch.demo.report import as_json, heading, line, running, show
from turnwatch.demo.run import Ending, paging, run_without_servers
from turnwatch.demo.timeline import Timeline

NOT_PAGED: Final = 1
NO_SERVERS: Final = 3

_PICTURE_COLUMNS: Final = 110
_STEP_SECONDS: Final = 1.0

demo_app = typer.Typer()


@demo_app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running until Ctrl-C.")] = False,
    as_json_only: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Save the output as a picture, too.", dir_okay=False)] = None,
) -> None:
    """Let a scripted agent get stuck and watch the page arrive, on real servers.

    Exit code 0: the page came in time and the healthy agent raised nothing. 1: not so.

    3: no Prometheus or Alertmanager on this machine, so only the verdict and the metrics were shown.
    """
    refuse_unfit((svg,), ())
    console = Console(quiet=as_json_only, record=svg is not None, width=None if svg is None else _PICTURE_COLUMNS)
    timeline = Timeline(lambda moment: console.print(line(moment)))
    logging.getLogger("turnwatch.verdicts").disabled = True  # the timeline tells of them
    console.print(heading())

    def report(ending: Ending) -> None:
        if as_json_only:
            typer.echo(json.dumps(as_json(timeline, ending), indent=2))
        else:
            show(ending, console)
        if svg is not None:
            console.save_svg(str(svg), title="turnwatch demo")

    try:
        programs = find_programs()
    except ProgramsMissingError as missing:
        console.print(f"Nobody can be paged on this machine: {missing}", highlight=False)
        report(run_without_servers(timeline))
        raise typer.Exit(NO_SERVERS) from None
    with _leaving_in_order(), ExitStack() as stack:
        with _spinner(console, is_drawn=svg is not None):
            ending = stack.enter_context(paging(programs, timeline))
        if not keep:
            report(ending)
        else:
            with suppress(KeyboardInterrupt):
                report(ending)
                console.print("\nStill running, until Ctrl-C:", running(ending))
                # In steps: a signal that comes just before a wait begins does not wake it.
                while not threading.Event().wait(_STEP_SECONDS):
                    pass
    raise typer.Exit(0 if ending.kept_its_promise else NOT_PAGED)


def _spinner(console: Console, *, is_drawn: bool) -> AbstractContextManager[object]:
    """Shows on a terminal that something is still going on; nothing anywhere else, nor on a picture."""
    return nullcontext() if is_drawn else console.status("servers and agents are at work")


@contextmanager
def _leaving_in_order() -> Iterator[None]:
    """Make a request to end, or a closed terminal, the same as Ctrl-C: what runs is stopped on the way out."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

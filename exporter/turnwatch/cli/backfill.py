"""``turnwatch backfill``: metrics of runs that are over, for a Prometheus."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from turnwatch.cli.durations import seconds_of
from turnwatch.cli.input_paths import InputPaths
from turnwatch.cli.output_file import refuse_unfit
from turnwatch.cli.reading_bar import ReadingBar
from turnwatch.cli.unread import UNREADABLE, UnreadPlaces
from turnwatch.core.printable import many
from turnwatch.errors import TurnwatchError
from turnwatch.metrics.history import History
from turnwatch.settings_file import load_settings
from turnwatch.sources.backfill import backfill
from turnwatch.sources.event_log import EventLog
from turnwatch.sources.scan import Format, Unread, scan
from turnwatch.sources.times_of_day import EARLIEST, LATEST

backfill_app = typer.Typer()

_LABEL: Final = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)=(.*)", re.DOTALL)
_TARGET: Final = {"job": "turnwatch-backfill", "instance": "history"}


def _moment(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("wants a time such as 2026-11-01T08:00:00Z") from None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not EARLIEST <= seconds < LATEST:
        raise typer.BadParameter("wants a time between the years 2000 and 2099")
    return seconds


def _labels(pairs: list[str]) -> dict[str, str]:
    labels = dict(_TARGET)
    for pair in pairs:
        found = _LABEL.fullmatch(pair)
        if found is None:
            raise typer.BadParameter("wants name=value", param_hint="--label")
        if found[1].startswith("__"):
            raise typer.BadParameter(f"{found[1]} is a name of Prometheus's own", param_hint="--label")
        labels[found[1]] = found[2]
    return labels


@backfill_app.command()
def backfill_command(
    paths: InputPaths,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Where to write; standard output when left out.")
    ] = None,
    step: Annotated[float, typer.Option(parser=seconds_of, metavar="DURATION", help="Scrape interval.")] = "15s",  # type: ignore[assignment]
    starting: Annotated[
        float | None,
        typer.Option("--from", parser=_moment, metavar="TIME", help="When the first of the turns without times began."),
    ] = None,
    spacing: Annotated[
        float, typer.Option(parser=seconds_of, metavar="DURATION", help="Between calls without times, with --from.")
    ] = "10s",  # type: ignore[assignment]
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Label of every series, as the scrape would set; may be given again."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML settings: thresholds and overrides.")] = None,
    file_format: Annotated[
        Format, typer.Option("--format", help="What the files hold, if not to be found out.")
    ] = Format.AUTO,
) -> None:
    """Write the metrics of recorded runs, at the times of the runs, as OpenMetrics.

    For promtool tsdb create-blocks-from openmetrics FILE FOLDER, so that a Prometheus shows one's own history.

    Exit codes: 0, 2 when something could not be read or no turn has times.
    """
    settings = load_settings(path=config)
    labels = _labels(label or [])
    refuse_unfit((out,), paths)
    with closing(EventLog(settings, starting, spacing)) as log, closing(History(labels)) as history:
        with ReadingBar() as bar:
            unread = UnreadPlaces(bar)
            for item in scan(paths, format=file_format, new_watch=log.new_watch, reading=bar):
                if isinstance(item, Unread):
                    unread.name(item)
            unread.name_the_rest()
        if log.left_out:
            _say(f"{many(log.left_out, 'turn')} without times left out; --from gives them some")
        elif not log.turns:
            _say("no turn of an agent was found")
        if log.turns:
            with Console(stderr=True).status("running the turns again"):
                backfill(log.events(), settings, history, step)
            _write(out, history)
            _say(f"{many(log.turns, 'turn')}, {history.series:,} series, {history.samples:,} samples")
    if unread or not log.turns:
        raise typer.Exit(UNREADABLE)


def _say(line: str) -> None:
    typer.echo(f"turnwatch: {line}", err=True)


def _write(path: Path | None, history: History) -> None:
    if path is None:
        history.write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        with path.open("wb") as file:
            history.write(file)
    except OSError as error:
        raise TurnwatchError(f"{path}: cannot be written: {error.strerror or type(error).__name__}") from None

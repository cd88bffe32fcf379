"""``turnwatch top``: what agents do now, in a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final

import orjson
import typer
from rich.console import Console

from turnwatch.cli.durations import seconds_of
from turnwatch.cli.json_text import json_text
from turnwatch.cli.severity_words import SEVERITIES
from turnwatch.errors import SettingsError
from turnwatch.settings_file import load_settings
from turnwatch.top.address import address_of, headers_of
from turnwatch.top.board import Board, board_of
from turnwatch.top.columns import KEYS
from turnwatch.top.journal import Journal
from turnwatch.top.live import CAN_WATCH, Wakeup, watch
from turnwatch.top.marks import RECENT_SECONDS, Marks
from turnwatch.top.polling import Polling, SourceState
from turnwatch.top.report import COUNTED_SINCE, as_json, as_lines
from turnwatch.top.sources import Forced, source_of
from turnwatch.top.view import View

top_app = typer.Typer()

NO_SOURCE: Final = 2

_LOOKS_FOR_RATES: Final = 2
_REQUESTS_A_LOOK: Final = 2  # the first finds out what the source is
_UNBOUND_COLUMNS: Final = 160
"""Width of a table that goes to no terminal: every column has room."""


@top_app.command()
def top(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Exporters (/metrics) or a Prometheus.")],
    once: Annotated[bool, typer.Option("--once", help="Print one table and exit.")] = False,
    as_json_only: Annotated[bool, typer.Option("--json", help="With --once: print one JSON object.")] = False,
    interval: Annotated[
        float, typer.Option(parser=seconds_of, metavar="DURATION", help="From one look at the sources to the next.")
    ] = "2s",  # type: ignore[assignment]
    window: Annotated[
        float, typer.Option(parser=seconds_of, metavar="DURATION", help="What rates look back over.")
    ] = "1m",  # type: ignore[assignment]
    timeout: Annotated[
        float, typer.Option(parser=seconds_of, metavar="DURATION", help="How long a source may take to answer.")
    ] = "5s",  # type: ignore[assignment]
    sort: Annotated[str, typer.Option(help=f"Column to sort by: {', '.join(KEYS)}.")] = "state",
    filter_text: Annotated[str, typer.Option("--filter", help="Only what holds this text.")] = "",
    header: Annotated[
        list[str] | None, typer.Option(help="Sent with every request: 'Authorization: Bearer ...'. May be repeated.")
    ] = None,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="Every URL is a Prometheus.")] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="Every URL is a page of metrics.")] = False,
    selector: Annotated[str, typer.Option(help="Of a Prometheus, only these series: 'job=\"agents\"'.")] = "",
    config: Annotated[Path | None, typer.Option(help="Settings file of the agents, for its thresholds.")] = None,
) -> None:
    """Watch agents live: open turns, repeats, verdicts and spend. Like htop, for agents.

    Exit codes: 0, 2 when no source could be read, or an address or an option is wrong.
    """
    if prometheus and metrics:
        raise SettingsError("--prometheus and --metrics: only one of them")
    if as_json_only and not once:
        raise SettingsError("--json goes with --once")
    if sort not in KEYS:
        raise SettingsError(f"--sort {sort!r}: one of {', '.join(KEYS)} is needed")
    forced: Forced = "prometheus" if prometheus else "metrics" if metrics else "auto"
    headers = headers_of(header or [])
    sources = [
        source_of(
            address_of(url, headers),
            window_seconds=window,
            timeout_seconds=timeout,
            selector=selector,
            forced=forced,
            since_exporters_began=once,
        )
        for url in dict.fromkeys(urls)
    ]
    if not once:
        _refuse_what_cannot_be_drawn_on()
    journal, marks = Journal(), Marks(load_settings(path=config))
    view = View(sort=sort, filter=filter_text)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # where it is not UTF-8: "?" instead of an end
    wakeup = None if once else Wakeup()
    polling = Polling(sources, interval, *(() if wakeup is None else (wakeup.ring,)))

    def board() -> Board:
        states = polling.states
        journal.note(states)
        return board_of(states, journal, marks, time.time())

    polling.start()
    try:
        patience = _LOOKS_FOR_RATES * (_REQUESTS_A_LOOK * timeout + interval)
        states = polling.wait_for(_have_rates if once else _can_begin, patience)
        _refuse_if_all_are_down(states, is_once=once)
        if wakeup is not None:
            watch(board, view, wakeup)
        elif as_json_only:
            typer.echo(json_text(as_json(board(), view), orjson.OPT_INDENT_2))
        else:
            _print_all(board(), view)
    finally:
        polling.stop()


def _refuse_what_cannot_be_drawn_on() -> None:
    if not CAN_WATCH:
        raise SettingsError("watching needs a POSIX terminal; --once works here, too")
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or Console().is_dumb_terminal:
        raise SettingsError("this is no terminal to draw on; --once prints one table")


def _have_rates(states: Sequence[SourceState]) -> bool:
    return all(state.error is not None or state.looks >= _LOOKS_FOR_RATES for state in states)


def _can_begin(states: Sequence[SourceState]) -> bool:
    return any(state.is_up for state in states) or all(state.looks for state in states)


def _refuse_if_all_are_down(states: Sequence[SourceState], *, is_once: bool) -> None:
    is_any_up = any(state.is_up for state in states)
    for state in states:
        if not state.is_up and (is_once or not is_any_up):  # the screen has its own line for those
            typer.echo(f"turnwatch: {state.error or f'{state.address}: no answer'}", err=True)
    if not is_any_up:
        raise typer.Exit(NO_SOURCE)


def _print_all(board: Board, view: View) -> None:
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_UNBOUND_COLUMNS)
    for line in as_lines(board, view, console.width):
        line.rstrip()
        console.print(line, no_wrap=True, crop=True)
    console.print()
    for meaning in _meanings(board):
        console.print(meaning, style="dim")


def _meanings(board: Board) -> Iterator[str]:
    """What the numbers mean, for somebody who sees the table for the first time."""
    recent = f"in the last {RECENT_SECONDS / 60:.0f} minutes"
    yield SEVERITIES
    yield (
        f"An agent is STUCK with identical calls past their threshold while nothing changed, or a stuck verdict, "
        f"{recent}, and in WARN with identical calls or iterations past their threshold, or a warning."
    )
    over = f"over the last {board.window_seconds:.0f} s" if board.window_seconds else "not known yet"
    yield (
        f"ITER, SAME, STALE, TURN$: the largest of a turn {recent}; ! is past its threshold. REP/m, CALL/m, ERR/m, "
        f"TOK/m, $/h: {over}. SPENT, #STUCK, #WARN, #STOP: {COUNTED_SINCE}. A dash is not known, which is not 0."
    )

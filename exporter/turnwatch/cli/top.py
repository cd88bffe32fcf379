"""``turnwatch top``: what agents do now, in a terminal."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Annotated, Final

import orjson
import typer
from rich.console import Console

from turnwatch.errors import SettingsError
from turnwatch.settings_file import load_settings
from turnwatch.top.address import address_of, headers_of
from turnwatch.top.board import Board, board_of
from turnwatch.top.columns import KEYS
from turnwatch.top.journal import Journal
from turnwatch.top.live import CAN_WATCH, Wakeup, watch
from turnwatch.top.marks import Marks
from turnwatch.top.polling import Polling
from turnwatch.top.report import as_json, as_lines
from turnwatch.top.sources import Forced, source_of
from turnwatch.top.view import View

top_app = typer.Typer()

NO_SOURCE: Final = 2

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_LOOKS_FOR_RATES: Final = 2
_UNBOUND_COLUMNS: Final = 160
"""Width of a table that goes to no terminal: every column has room."""


def seconds_of(text: str) -> float:
    """Read a duration: 2s, 500ms, 1m; a number alone is seconds.

    Raises:
        SettingsError: It is none, or not above 0.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)", text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0.05 <= seconds <= 86_400.0:
        raise SettingsError(f"{text!r} is no duration: 2s, 500ms or 1m is needed")
    return seconds


@top_app.command()
def top(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Exporters (/metrics) or a Prometheus.")],
    once: Annotated[bool, typer.Option("--once", help="Print one table and exit.")] = False,
    as_json_only: Annotated[bool, typer.Option("--json", help="With --once: print one JSON object.")] = False,
    interval: Annotated[str, typer.Option(help="From one look at the sources to the next.")] = "2s",
    window: Annotated[str, typer.Option(help="What rates look back over.")] = "1m",
    timeout: Annotated[str, typer.Option(help="How long a source may take to answer.")] = "5s",
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
    if not once and not _is_watchable():
        raise SettingsError("this is no terminal to draw on; --once prints one table")
    headers = headers_of(header or [])
    forced: Forced = "prometheus" if prometheus else "metrics" if metrics else "auto"
    timeout_seconds = seconds_of(timeout)
    sources = [
        source_of(
            address_of(url, headers),
            window_seconds=seconds_of(window),
            timeout_seconds=timeout_seconds,
            selector=selector,
            forced=forced,
        )
        for url in dict.fromkeys(urls)
    ]
    journal, marks = Journal(), Marks(load_settings(path=config))
    view = View(sort=sort, filter=filter_text)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without UTF-8 shows less, not nothing
    news = Event()
    wakeup = None if once else Wakeup()

    def on_news() -> None:
        news.set()
        if wakeup is not None:
            wakeup.ring()

    polling = Polling(sources, seconds_of(interval), on_news)

    def board() -> Board:
        states = polling.states
        journal.note(states)
        return board_of(states, journal, marks, time.time())

    polling.start()
    try:
        looks = _LOOKS_FOR_RATES if once else 1
        patience = looks * (2 * timeout_seconds + seconds_of(interval))
        _wait(news, lambda: _are_there(polling, looks, is_first_enough=not once), patience)
        _complain(polling, is_once=once)
        if wakeup is not None:
            watch(board, view, wakeup)
        elif as_json_only:
            typer.echo(orjson.dumps(as_json(board(), view), option=orjson.OPT_INDENT_2).decode())
        else:
            _print_all(board(), view)
    finally:
        polling.stop()


def _print_all(board: Board, view: View) -> None:
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_UNBOUND_COLUMNS)
    for line in as_lines(board, view, console.width):
        line.rstrip()
        console.print(line, no_wrap=True, crop=True)


def _is_watchable() -> bool:
    if not CAN_WATCH:
        raise SettingsError("watching needs a POSIX terminal; --once works here, too")
    return sys.stdin.isatty() and sys.stdout.isatty() and not Console().is_dumb_terminal


def _are_there(polling: Polling, looks: int, *, is_first_enough: bool) -> bool:
    states = polling.states
    if is_first_enough and any(state.is_up for state in states):
        return True
    # A source that is down is not waited for a second time.
    return all(state.looks >= looks or (state.looks and state.error is not None) for state in states)


def _wait(news: Event, is_done: Callable[[], bool], patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    while not is_done() and time.monotonic() < deadline:
        news.wait(0.5)
        news.clear()


def _complain(polling: Polling, *, is_once: bool) -> None:
    states = polling.states
    is_any_up = any(state.is_up for state in states)
    if is_once or not is_any_up:
        for state in states:
            if not state.is_up:
                typer.echo(f"turnwatch: {state.error or f'{state.address}: no answer'}", err=True)
    if not is_any_up:
        raise typer.Exit(NO_SOURCE)

"""``turnwatch scan``: what is in the traces and transcripts people already have."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer

from turnwatch.cli.html_report import HtmlReport
from turnwatch.cli.input_paths import InputPaths
from turnwatch.cli.json_text import json_text
from turnwatch.cli.output_file import refuse_unfit
from turnwatch.cli.reading_bar import ReadingBar
from turnwatch.cli.scan_junit import JUnitReport
from turnwatch.cli.scan_table import ScanTable
from turnwatch.cli.unread import UNREADABLE, Output, UnreadPlaces
from turnwatch.core.printable import many
from turnwatch.core.watch import Watch
from turnwatch.settings import Settings
from turnwatch.settings_file import load_settings
from turnwatch.sources.scan import Format, ScannedTurn, Unread, scan
from turnwatch.sources.totals import ToolTotals, Totals

scan_app = typer.Typer()

LOOP_FOUND: Final = 1
# Reading makes and drops very many small objects, none of them in cycles worth looking for often.
COLLECT_AFTER: Final = (100_000, 20, 20)


def as_row(scanned: ScannedTurn, tools: Mapping[str, ToolTotals]) -> dict[str, Any]:
    """One turn, and what it asked of its tools, as ``scan --json`` prints it."""
    turn = scanned.state
    usage = turn.usage
    return {
        "source": scanned.source,
        "line": scanned.line,
        "turn_id": turn.turn_id,
        "parent_turn_id": None if turn.parent is None else turn.parent.turn_id,
        "conversation_id": turn.conversation_id,
        "agent": turn.agent,
        "iterations": turn.iterations,
        "tool_calls": turn.tool_calls,
        "repeats": turn.repeats,
        "duplicates": turn.duplicates,
        "missing_arguments": turn.missing_arguments,
        "tools": {
            name: {
                "calls": tool.calls,
                "repeats": tool.repeats,
                "same": tool.same,
                "errors": tool.errors,
                "wasted": tool.wasted,
            }
            for name, tool in tools.items()
        },
        "loops": [
            {
                "kind": verdict.kind,
                "tool": verdict.tool,
                "first_call": verdict.first_call,
                "detected_call": verdict.detected_call,
                "severity": verdict.severity,
            }
            for verdict in turn.verdicts
        ],
        "loop_lines": list(scanned.loop_lines),
        "tokens": None
        if usage is None
        else {
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "reasoning": usage.reasoning,
        },
        "spend_usd": turn.spend_usd if turn.iterations else None,
        "unpriced_models": sorted(turn.unpriced_models),
        "wasted_tool_calls": turn.wasted_tool_calls,
        "wasted_usd": turn.wasted_usd,
        "stop_reason": turn.stop_reason,
    }


@scan_app.command()
def scan_command(
    paths: InputPaths,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a turn.")] = False,
    fail_on_loop: Annotated[
        bool,
        typer.Option(
            "--fail-on-loop",
            help="Exit with 1 when a turn is stuck, 2 when nothing could be judged.",
        ),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit report, a test case a turn, too.")
    ] = None,
    file_format: Annotated[
        Format, typer.Option("--format", help="What the files hold, if not to be found out.")
    ] = Format.AUTO,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the worst turns drawn, too.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML settings: thresholds and overrides.")] = None,
) -> None:
    """Report turns, repeats, loops, tokens, spend and waste.

    Reads spans (JSON of the OpenTelemetry SDK, OTLP JSON and protobuf), trajectories, and transcripts of agents, plain
    or compressed.

    Exit codes: 0; 1 with --fail-on-loop and a stuck turn, or one that repeats calls whose results are not known; 2 when
    something could not be read, or with --fail-on-loop when no turn was found, or no tool call could be judged.
    """
    settings = load_settings(path=config)
    refuse_unfit((html, junit), paths)
    gc.set_threshold(*COLLECT_AFTER)
    scanning = _Scanning(settings, as_json=as_json, html=html, junit=junit)
    with ReadingBar(prints_meanwhile=as_json) as bar:
        unread = UnreadPlaces(bar)
        for item in scan(paths, format=file_format, new_watch=scanning.new_watch, reading=bar):
            scanning.take(item, unread)
        unread.name_the_rest()
    scanning.end()
    if unread:
        raise typer.Exit(UNREADABLE)
    if not scanning.table.turns:
        typer.echo("turnwatch: no turn of an agent was found", err=True)
        if fail_on_loop:
            raise typer.Exit(UNREADABLE)
    if fail_on_loop and scanning.table.failing:
        repeating = scanning.table.failing - scanning.table.stuck
        if repeating:
            typer.echo(
                f"turnwatch: {many(repeating, 'turn')} with repeated calls whose results are not known", err=True
            )
        raise typer.Exit(LOOP_FOUND)
    if fail_on_loop and scanning.saw_no_arguments:
        typer.echo("turnwatch: none of the tool calls could be judged: none has arguments or an input hash", err=True)
        raise typer.Exit(UNREADABLE)


class _Scanning:
    """What becomes of the turns of one scan."""

    def __init__(self, settings: Settings, *, as_json: bool, html: Path | None, junit: Path | None) -> None:
        self._settings = settings
        self._as_json = as_json
        self._html = html
        self._page = HtmlReport(settings) if html is not None else None
        self._junit = JUnitReport(junit) if junit is not None else None
        self._totals = Totals(by_turn=as_json)
        self.table = ScanTable(self._totals, settings.detect.max_identical_calls)

    def new_watch(self) -> Watch:
        """What the turns of a file are judged by, and counted."""
        watch = self._page.new_watch() if self._page is not None else Watch(self._settings, clock=lambda: 0.0)
        watch.listeners.append(self._totals)
        return watch

    def take(self, item: ScannedTurn | Unread, unread: UnreadPlaces) -> None:
        """Take what the scan found next."""
        if self._page is not None:
            self._page.add(item)
        if self._junit is not None:
            self._junit.add(item)
        if isinstance(item, Unread):
            unread.name(item)
        else:
            self.table.add(item)
            if self._as_json:
                row = as_row(item, self._totals.tools_of(item.state))
                sys.stdout.buffer.write(json_text(row, orjson.OPT_APPEND_NEWLINE))

    @property
    def saw_no_arguments(self) -> bool:
        """Whether there were tool calls, and none that could be told from another."""
        total = self._totals.all
        return 0 < total.tool_calls == total.missing_arguments

    def end(self) -> None:
        """Write what is known only at the end."""
        if self._as_json:
            sys.stdout.buffer.flush()
        else:
            self.table.show(Output())
            sys.stdout.flush()
        if self._page is not None and self._html is not None:
            self._page.write(self._html)
        if self._junit is not None:
            self._junit.write()

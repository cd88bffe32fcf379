"""``turnwatch scan``: what is in the traces and transcripts people already have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnwatch.cli.html_report import HtmlReport
from turnwatch.core.turn import TurnState
from turnwatch.settings_file import load_settings
from turnwatch.sources.scan import Format, ScannedTurn, Unread, scan

scan_app = typer.Typer()

LOOP_FOUND: Final = 1
UNREADABLE: Final = 2
_WORST_SHOWN: Final = 20


def as_row(scanned: ScannedTurn) -> dict[str, Any]:
    """One turn as ``scan --json`` prints it."""
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


def is_stuck(turn: TurnState) -> bool:
    """Whether the turn got a verdict that pages or stops."""
    return turn.verdict is not None and turn.verdict.severity == "stuck"


@scan_app.command()
def scan_command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders, plain or compressed.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a turn.")] = False,
    fail_on_loop: Annotated[bool, typer.Option("--fail-on-loop", help="Exit with 1 when a turn is stuck.")] = False,
    file_format: Annotated[
        Format, typer.Option("--format", help="What the files hold, if not to be found out.")
    ] = Format.AUTO,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the worst turns drawn, too.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML settings: thresholds and overrides.")] = None,
) -> None:
    """Report turns, repeats, loops, tokens, spend and waste.

    Reads spans (JSON of the OpenTelemetry SDK, OTLP JSON and protobuf), trajectories, and transcripts of agents.

    Exit codes: 0, 1 with --fail-on-loop and a stuck turn, 2 when something could not be read.
    """
    settings = load_settings(path=config)
    report = HtmlReport(settings) if html is not None else None
    errors = Console(stderr=True)
    totals = _Totals()
    unreadable = False
    with errors.status("reading") as status:

        def progress(file: Path) -> None:
            status.update(_plain(f"reading {file.name}"))

        new_watch = report.new_watch if report is not None else None
        for item in scan(paths, settings, progress, format=file_format, new_watch=new_watch):
            if report is not None:
                report.add(item)
            if isinstance(item, Unread):
                unreadable = True
                typer.echo(f"turnwatch: {item}", err=True)
            else:
                totals.add(item)
                if as_json:
                    typer.echo(orjson.dumps(as_row(item)).decode())
    if not as_json:
        totals.show(Console())
    if report is not None and html is not None:
        report.write(html)
    if unreadable:
        raise typer.Exit(UNREADABLE)
    if not totals.turns:
        typer.echo("turnwatch: no turn of an agent was found", err=True)
    if fail_on_loop and totals.stuck:
        raise typer.Exit(LOOP_FOUND)


def _plain(text: str) -> Text:
    """A text from outside, in which neither rich's markup nor a terminal's control characters do anything."""
    return Text("".join(char if char.isprintable() else "�" for char in text))


def _many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


class _Totals:
    """What the table at the end says. Keeps the worst turns only."""

    def __init__(self) -> None:
        self.turns = self.stuck = self.calls = self.repeats = self.wasted_calls = self.missing = 0
        self.wasted_usd = self.spend_usd = 0.0
        self._worst: list[tuple[tuple[int, int, int], int, dict[str, Any]]] = []

    def add(self, item: ScannedTurn) -> None:
        turn = item.state
        self.turns += 1
        self.stuck += is_stuck(turn)
        self.calls += turn.tool_calls
        self.repeats += turn.repeats
        self.missing += turn.missing_arguments
        self.wasted_calls += turn.wasted_tool_calls
        self.wasted_usd += turn.wasted_usd
        self.spend_usd += turn.spend_usd or 0.0
        if turn.verdict is not None or turn.duplicates:
            rank = (int(is_stuck(turn)), turn.wasted_tool_calls, turn.duplicates)
            self._worst.append((rank, -self.turns, as_row(item)))
            if len(self._worst) > 4 * _WORST_SHOWN:
                self._keep_worst()

    def _keep_worst(self) -> None:
        self._worst.sort(key=lambda entry: entry[:2], reverse=True)
        del self._worst[_WORST_SHOWN:]

    def show(self, console: Console) -> None:
        self._keep_worst()
        if self._worst:
            table = Table(title="Worst turns", title_justify="left")
            for heading in ("where", "agent", "loop", "tool", "calls", "wasted"):
                table.add_column(
                    heading, justify="right" if heading in ("calls", "wasted") else "left", overflow="fold"
                )
            for _, _, row in self._worst:
                loop = max(row["loops"], key=lambda each: each["severity"] == "stuck", default=None)
                where = Path(row["source"]).name + ("" if row["line"] is None else f":{row['line']}")
                table.add_row(
                    _plain(where),
                    _plain(row["agent"]),
                    f"{loop['kind']} ({loop['severity']})" if loop else f"{row['duplicates']} duplicates",
                    _plain(f"{loop['tool']} from call {loop['first_call']}" if loop else ""),
                    str(row["tool_calls"]),
                    str(row["wasted_tool_calls"]),
                )
            console.print(table)
        console.print(
            f"{_many(self.turns, 'turn')}, {_many(self.calls, 'tool call')}, {self.repeats} of them repeats; "
            f"{_many(self.stuck, 'turn')} stuck."
        )
        if self.spend_usd:
            console.print(f"Model calls with a known price: ${self.spend_usd:.2f}.")
        if self.wasted_calls:
            dollars = f" and ${self.wasted_usd:.2f}" if self.wasted_usd else ""
            console.print(f"After the first stuck verdict: {_many(self.wasted_calls, 'tool call')}{dollars} wasted.")
        if self.missing:
            console.print(f"{_many(self.missing, 'call')} carried no arguments and could not be judged.")

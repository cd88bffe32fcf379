"""``turnwatch tune``: thresholds from one's own runs."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from turnwatch.cli.input_paths import InputPaths
from turnwatch.cli.json_text import json_text
from turnwatch.cli.output_file import refuse_unfit
from turnwatch.cli.reading_bar import ReadingBar
from turnwatch.cli.tune_tables import no_limits, show
from turnwatch.cli.unread import UNREADABLE, Output, UnreadPlaces
from turnwatch.core.printable import many, printable
from turnwatch.errors import TurnwatchError
from turnwatch.pack.tuning.alert_thresholds import AlertThresholds
from turnwatch.pack.tuning.config_text import config_text, with_suggestions
from turnwatch.pack.tuning.outcomes import Outcomes
from turnwatch.pack.tuning.runs import AgentRuns, Quantity, Runs
from turnwatch.pack.tuning.suggestions import MIN_TURNS, Suggested, suggest
from turnwatch.pack.tuning.tried_rules import RULES, Flagged, paging, tool_errors, tried, verdicts
from turnwatch.settings import Settings
from turnwatch.settings_file import CONFIG_VARIABLE, load_settings
from turnwatch.sources.scan import Format, Unread, scan
from turnwatch.yaml_file import read_yaml_file

tune_app = typer.Typer()


@tune_app.command()
def tune_command(
    paths: InputPaths,
    config: Annotated[Path | None, typer.Option(help="YAML settings in force: thresholds and overrides.")] = None,
    outcomes: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Outcomes, one a line (JSON or CSV); stop_reason goes by how the turns ended."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the whole suggested settings file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a FILE that exists.")] = False,
    min_turns: Annotated[int, typer.Option(min=1, help="Healthy turns that a limit must rest on.")] = MIN_TURNS,
    file_format: Annotated[
        Format, typer.Option("--format", help="What the files hold, if not to be found out.")
    ] = Format.AUTO,
) -> None:
    """Show what each threshold would have fired on over your own runs, and suggest settings.

    Reads what scan reads. The suggested settings are for exporter, guards and alert rules alike.

    Exit codes: 0, 2 when something could not be read or no turn was found, or when FILE exists and is not the settings
    in force.
    """
    refuse_unfit((out,), paths)
    present = config or _from_environment()
    if out is not None and not force and out.exists() and not _is_same(out, present):
        typer.echo(f"turnwatch: {printable(str(out))} exists; --force writes over it", err=True)
        raise typer.Exit(UNREADABLE)
    settings = load_settings(path=config)
    thresholds = AlertThresholds(settings)
    said = Outcomes(outcomes)
    runs = Runs(settings)
    with ReadingBar() as bar:
        unread = UnreadPlaces(bar)
        for item in scan(paths, format=file_format, new_watch=runs.new_watch, reading=bar):
            if isinstance(item, Unread):
                unread.name(item)
            else:
                runs.add(item.state, *said.of(item))
        unread.name_the_rest()
    _report(runs, said, settings, thresholds, as_json=as_json, out=out, present=present, min_turns=min_turns)
    if unread:
        raise typer.Exit(UNREADABLE)


def _report(
    runs: Runs,
    said: Outcomes,
    settings: Settings,
    thresholds: AlertThresholds,
    *,
    as_json: bool,
    out: Path | None,
    present: Path | None,
    min_turns: int,
) -> None:
    if not runs.agents:
        typer.echo("turnwatch: no turn of an agent was found", err=True)
        raise typer.Exit(UNREADABLE)
    if said.fits_nothing:
        typer.echo("turnwatch: no outcome of --outcomes is one of these turns: their ids are in scan --json", err=True)
    suggested = suggest(runs, settings, thresholds, min_turns)
    if as_json:
        typer.echo(json_text(_as_json(runs, said, thresholds, suggested), orjson.OPT_INDENT_2).decode())
    else:
        show(Output(), runs, said, thresholds, suggested)
        if out is None and suggested.changes:
            typer.echo(_suggested_file({}, suggested, runs))
    if out is not None:
        if not suggested.changes and out.exists():
            typer.echo(f"turnwatch: nothing to change; {printable(str(out))} is left as it is", err=True)
            return
        _write(out, _suggested_file({} if present is None else read_yaml_file(present).data, suggested, runs))
        name = printable(str(out))
        typer.echo(f"turnwatch: {name} written; next: turnwatch pack render --config {shlex.quote(name)}", err=True)


def _from_environment() -> Path | None:
    path = os.environ.get(CONFIG_VARIABLE)
    return Path(path) if path else None


def _is_same(path: Path, other: Path | None) -> bool:
    return other is not None and other.exists() and path.samefile(other)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TurnwatchError(f"{path}: cannot be written: {error.strerror or type(error).__name__}") from None


def _suggested_file(present: dict[str, Any], suggested: Suggested, runs: Runs) -> str:
    turns = sum(agent.count() for agent in runs.agents.values())
    heading = [f"Suggested by `turnwatch tune` from {many(turns, 'turn')}.", *no_limits(suggested)]
    return config_text(with_suggestions(present, suggested.changes), suggested.changes, heading)


def _as_json(runs: Runs, said: Outcomes, thresholds: AlertThresholds, suggested: Suggested) -> dict[str, Any]:
    return {
        "turns": sum(agent.count() for agent in runs.agents.values()),
        "outcomes_known_from": dict(said.known_from),
        "rules": _rules_of(runs.agents, thresholds),
        "agents": {name: _agent(name, agent, thresholds) for name, agent in runs.agents.items()},
        "tools": [{**asdict(tool), "share": tool.share} for tool in tool_errors(runs, thresholds)],
        "suggested": with_suggestions({}, suggested.changes),
        "changes": [asdict(change) for change in suggested.changes],
        "too_few_turns": suggested.too_few,
        "too_few_calls": [asdict(tool) for tool in suggested.too_few_calls],
        "always_failing": [asdict(tool) for tool in suggested.always_failing],
    }


def _agent(name: str, agent: AgentRuns, thresholds: AlertThresholds) -> dict[str, Any]:
    return {
        "turns": agent.count(),
        "healthy_turns": agent.count(lambda group: group.is_healthy),
        "quantities": {
            quantity.value: {
                "known": len(values),
                "median": values.quantile(0.5),
                "p95": values.quantile(0.95),
                "p99": values.quantile(0.99),
                "largest": values.largest,
                "counts": [list(each) for each in values],
            }
            for quantity in Quantity
            if len(values := agent.of(quantity))
        },
        "rules": _rules_of({name: agent}, thresholds),
    }


def _rules_of(agents: dict[str, AgentRuns], thresholds: AlertThresholds) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = [
        {"alert": "AgentLoopDetected", "quantity": None, "verdict": name, "of": "turns", **_row(row)}
        for name, row in verdicts(agents)
    ]
    for rule in RULES:
        now, ladder = tried(rule, agents, thresholds)
        what = {"alert": rule.alert or None, "quantity": rule.quantity.value, "of": rule.of}
        if now.all and rule.key:
            rules.append({**what, "is_present_setting": True, **_row(now)})
            if (critical := paging(rule, agents, thresholds)) is not None:
                rules.append({**what, "is_present_critical_setting": True, **_row(critical)})
        rules += [{**what, "is_present_setting": False, **_row(step)} for step in ladder]
    return rules


def _row(row: Flagged) -> dict[str, Any]:
    return {**asdict(row), "precision": row.precision, "precision_is_guess": row.guessed > 0}

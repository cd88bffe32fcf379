"""``turnwatch pack``: the alert rules, dashboards and runbooks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from turnwatch.pack.check import pack_faults
from turnwatch.pack.config_file import config_of
from turnwatch.pack.home import pack_home
from turnwatch.pack.promtool_tests import failing_tests
from turnwatch.pack.render import differing
from turnwatch.pack.render import render as render_pack

pack_app = typer.Typer(no_args_is_help=True, help="Render, check, test, compare and deploy the pack.")


@pack_app.callback()
def _pack() -> None:
    """Alert rules, dashboards, Alertmanager routing and runbooks."""


@pack_app.command()
def render(
    config: Annotated[
        Path | None, typer.Option(help="Settings file of the exporter; thresholds are taken from it.", dir_okay=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.", file_okay=False)] = Path(),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")] = False,
) -> None:
    """Write rules, dashboards, the Alertmanager example and the runbooks."""
    values = None if config is None else config_of(config)
    if check:
        if changed := differing(values, out):
            typer.echo("\n".join(f"differs: {path}" for path in changed), err=True)
            raise typer.Exit(1)
        return
    for path in render_pack(values, out):
        typer.echo(path)


@pack_app.command()
def check(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Where `pack render` wrote to; the shipped pack when left out.", file_okay=False),
    ] = None,
    grafana_schemas: Annotated[
        Path | None, typer.Option(help="Folder of Grafana's JSON schemas (grafana-foundation-sdk).", file_okay=False)
    ] = None,
) -> None:
    """Say what is wrong with rules, dashboards and runbooks; exit with 1 if anything is."""
    for program in ("promtool", "amtool"):
        if not shutil.which(program):
            typer.echo(f"{program} not found on PATH: what it would say is not checked", err=True)
    faults = pack_faults(folder or pack_home(), grafana_schemas=grafana_schemas)
    for fault in faults:
        typer.echo(fault)
    if faults:
        raise typer.Exit(1)


@pack_app.command("test")
def run_tests(
    folder: Annotated[
        Path | None, typer.Argument(help="Where the pack is; the shipped pack when left out.", file_okay=False)
    ] = None,
) -> None:
    """Run the promtool tests in FOLDER/alert_rules/tests; exit with 1 if one fails."""
    failing = failing_tests(folder or pack_home())
    for path, said in failing.items():
        typer.echo(f"{path}\n{said}")
    if failing:
        raise typer.Exit(1)

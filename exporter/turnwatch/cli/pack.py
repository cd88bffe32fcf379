"""``turnwatch pack``: the alert rules, dashboards and runbooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnwatch.pack.config_file import config_of
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

"""``turnwatch pack``: the alert rules, dashboards and runbooks."""

from __future__ import annotations

import functools
import inspect
import shutil
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from turnwatch.cli.json_text import json_text
from turnwatch.cli.pack_written import said_of
from turnwatch.cli.typed_path import folder_of
from turnwatch.core.printable import many
from turnwatch.pack.check import extent, pack_faults
from turnwatch.pack.check_forms import unchecked_forms
from turnwatch.pack.config_file import config_of, remarks_on
from turnwatch.pack.deploy.changes import Target, deploy
from turnwatch.pack.deploy.targets import Destinations
from turnwatch.pack.forms import FORMS
from turnwatch.pack.home import pack_home
from turnwatch.pack.promtool_tests import failing_tests, test_files
from turnwatch.pack.render import RULES_FILE, differing, left_alone, local_dashboards, outdated, pack_files, write

pack_app = typer.Typer(no_args_is_help=True, help="Render, check, test, compare and deploy the pack.")


class Form(StrEnum):
    """Forms of the pack beside the plain files."""

    mimir = "mimir"
    grafana = "grafana"
    kubernetes = "kubernetes"
    history = "history"


Folder = Annotated[
    Path | None,
    typer.Argument(
        help="Where `pack render` wrote to; the shipped pack when left out.", parser=folder_of, metavar="FOLDER"
    ),
]


@pack_app.callback()
def _pack() -> None:
    """Alert rules, dashboards, Alertmanager routing and runbooks."""


@pack_app.command("render")
def render(
    config: Annotated[
        Path | None, typer.Option(help="Settings file of the exporter; thresholds are taken from it.", dir_okay=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder to write to.", parser=folder_of, metavar="<dir>")] = Path(),
    form: Annotated[
        list[Form] | None,
        typer.Option(
            "--for",
            metavar="SYSTEM",
            help="Also write the files of mimir, grafana, kubernetes or history; may be given again.",
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: folder, files and changed.")] = False,
) -> None:
    """Write rules, dashboards, the Alertmanager example and the runbooks."""
    values = None if config is None else config_of(config)
    for remark in remarks_on(config) if config is not None else ():
        typer.echo(remark, err=True)
    with Console(stderr=True).status("rendering"):
        plain = pack_files(values, is_own_source=out.resolve() == pack_home())
        files = dict(plain)
        for one in form or ():
            files |= FORMS[one](plain, values or {})
    changed, gone = differing(files, out), outdated(files, out)
    if not check:
        write(files, out)
        for path in gone:
            path.unlink()
    if as_json:
        said = {"folder": str(out.resolve()), "files": list(files)}
        said |= {"changed": [str(path) for path in changed], "removed": [str(path) for path in gone]}
        typer.echo(json_text(said, orjson.OPT_INDENT_2))
    elif not check:
        typer.echo("\n".join(said_of(files, changed, gone, out)))
        _warn_of_local_links(plain[RULES_FILE])
    elif changed or gone:
        differences = [f"differs: {path}" for path in changed] + [f"no longer made: {path}" for path in gone]
        typer.echo("\n".join(differences), err=True)
    else:
        typer.echo(f"{many(len(files), 'file')}: up to date")
    if old := left_alone(files, out):
        typer.echo(
            f"made by an earlier render, and not by this one: {', '.join(old)}. Their numbers may be others: "
            "render with their --for, or delete them",
            err=True,
        )
    if check and (changed or gone):
        raise typer.Exit(1)


@pack_app.command("check")
def check(
    folder: Folder = None,
    grafana_schemas: Annotated[
        Path | None,
        typer.Option(
            help="Folder of Grafana's JSON schemas (grafana-foundation-sdk).", parser=folder_of, metavar="<dir>"
        ),
    ] = None,
) -> None:
    """Say what is wrong with rules, dashboards and runbooks; exit with 1 if anything is."""
    for program in ("promtool", "amtool"):
        if not shutil.which(program):
            typer.echo(f"{program} not found on PATH: what it would say is not checked", err=True)
    folder = folder or pack_home()
    if unchecked := unchecked_forms(folder):
        typer.echo(f"not checked: {', '.join(unchecked)}", err=True)
    faults = pack_faults(folder, grafana_schemas=grafana_schemas)
    for fault in faults:
        typer.echo(fault)
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{extent(folder)}: nothing wrong")


@pack_app.command("test")
def run_tests(folder: Folder = None) -> None:
    """Run the promtool tests in FOLDER/alert_rules/tests; exit with 1 if one fails.

    `pack render` writes tests of your thresholds; put your own beside them. The shipped pack has tests of what each
    alert means, too.
    """
    folder = folder or pack_home()
    failing = failing_tests(folder)
    for path, said in failing.items():
        typer.echo(f"{path}\n{said}")
    if failing:
        raise typer.Exit(1)
    typer.echo(f"{many(len(test_files(folder)), 'test file')}: nothing fails")


def _targets(
    folder: Folder = None,
    prometheus_url: Annotated[str | None, typer.Option(help="Prometheus, to reload and to look at.")] = None,
    rules_folder: Annotated[
        Path | None, typer.Option(help="Folder that its rule_files name.", parser=folder_of, metavar="<dir>")
    ] = None,
    alertmanager_url: Annotated[str | None, typer.Option(help="Alertmanager, to reload and to look at.")] = None,
    alertmanager_file: Annotated[Path | None, typer.Option(help="File it was started with.", dir_okay=False)] = None,
    grafana_url: Annotated[
        str | None, typer.Option(help="Grafana. The token comes from GRAFANA_TOKEN or a file.")
    ] = None,
    grafana_folder: Annotated[str, typer.Option(help="Uid of the folder; made when it is missing.")] = "turnwatch",
    grafana_namespace: Annotated[str, typer.Option(help="Namespace, of Grafana 12 and later.")] = "default",
    grafana_token_file: Annotated[
        Path | None, typer.Option(help="Holds a service account's token.", dir_okay=False)
    ] = None,
) -> list[Target]:
    """The servers that the options name. Every command that talks to servers takes these options."""
    pack = folder or pack_home()
    targets = Destinations(
        prometheus_url, rules_folder, alertmanager_url, alertmanager_file,
        grafana_url, grafana_folder, grafana_namespace, grafana_token_file,
    ).targets(pack)  # fmt: skip
    if prometheus_url:
        _warn_of_local_links((pack / RULES_FILE).read_text(encoding="utf-8"))
    return targets


def _warn_of_local_links(rules: str) -> None:
    if address := local_dashboards(rules):
        typer.echo(
            f"alerts link to dashboards at {address}, which others cannot open: set alerts.dashboardBaseUrl in the"
            " settings file and render with --config",
            err=True,
        )


def _with_targets(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take the options of ``_targets`` before its own; it is handed the servers that they name."""
    shared, own = (inspect.signature(function, eval_str=True).parameters for function in (_targets, command))

    @functools.wraps(command)
    def with_targets(**given: Any) -> None:
        command(_targets(**{name: given.pop(name) for name in shared}), **given)

    # What typer makes the options of.
    parameters = [*shared.values(), *(parameter for parameter in own.values() if parameter.name != "targets")]
    with_targets.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_targets.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_targets


Prune = Annotated[bool, typer.Option("--prune", help="Also remove what turnwatch made before and no longer makes.")]


@pack_app.command("diff")
@_with_targets
def diff(targets: list[Target], prune: Prune = False) -> None:
    """Show what a deployment would change on the servers; exit with 1 if anything."""
    if _show_changes(targets, prune=prune):
        raise typer.Exit(1)


@pack_app.command("deploy")
@_with_targets
def deploy_pack(
    targets: list[Target],
    prune: Prune = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what turnwatch did not make, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
) -> None:
    """Put rules, routes and dashboards on the servers, and see that they hold them."""
    if dry_run:
        _show_changes(targets, prune=prune)
        return
    for target, changed in deploy(targets, prune=prune, force=force):
        for change in changed:
            typer.echo(f"{target.name}: {change.done}")
        if not changed:
            typer.echo(f"{target.name}: {target.up_to_date}")


def _show_changes(targets: Sequence[Target], *, prune: bool) -> bool:
    found = False
    for target in targets:
        for change in target.changes(prune=prune):
            found = True
            typer.echo(f"{target.name}: {change.action} {change.what}")
            typer.echo(change.diff, nl=False)
    if not found:
        typer.echo("\n".join(f"{target.name}: {target.up_to_date}" for target in targets))
    return found

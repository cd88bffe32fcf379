"""``turnwatch serve``: spans in over OTLP, metrics out, everything passed on."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnwatch.cli.typed_path import folder_of
from turnwatch.errors import MissingExtraError, SettingsError
from turnwatch.settings import Service, Settings

if TYPE_CHECKING:
    from turnwatch.service.run import Addresses

serve_app = typer.Typer()


@serve_app.command()
def serve(
    forward: Annotated[
        str | None, typer.Option(metavar="URL", help="Pass everything on, unchanged, to this OTLP/HTTP receiver.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to receive on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for OTLP over HTTP; 0 picks a free one.", min=0, max=65535)] = 4318,
    grpc_port: Annotated[int, typer.Option(help="Port for OTLP over gRPC; 0 picks one.", min=0, max=65535)] = 4317,
    grpc: Annotated[bool, typer.Option("--grpc/--no-grpc", help="Receive OTLP over gRPC as well.")] = True,
    metrics_host: Annotated[str, typer.Option(help="Address for /metrics.")] = "127.0.0.1",
    metrics_port: Annotated[int, typer.Option(help="Port for /metrics; 0 picks one.", min=0, max=65535)] = 9464,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the bearer token that clients must send."),
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="Certificate with its chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key of the certificate, PEM.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file.", dir_okay=False)] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where to note what a kill would lose of the forward queue.", parser=folder_of, metavar="<dir>"
        ),
    ] = None,
) -> None:
    """Receive OpenTelemetry traces and logs, count what agents do, and serve /metrics.

    SIGTERM ends it in order: what is under way is finished, and what waits to be passed on is sent.

    The token may also stand in the variable TURNWATCH_SERVICE__TOKEN, and the settings in the file of TURNWATCH_CONFIG.
    """
    logging.basicConfig(format="turnwatch: %(message)s", level=logging.WARNING)
    logging.getLogger("turnwatch").setLevel(logging.INFO)  # verdicts that only warn are lines, too
    try:
        from turnwatch.service.access import token_of_file
        from turnwatch.service.listener import Certificate
        from turnwatch.service.run import Places, run_service
    except ImportError as error:
        raise MissingExtraError("turnwatch serve", "serve") from error
    from turnwatch.metrics.outlet import configure, metrics_registry
    from turnwatch.sources.spans.instrument import say_what_needs_guards

    if (tls_certificate is None) != (tls_key is None):
        raise SettingsError("--tls-certificate and --tls-key are given together or not at all")
    if forward is not None and not forward.startswith(("http://", "https://")):
        raise SettingsError("--forward: an http:// or https:// address is needed")
    if config is not None:
        os.environ["TURNWATCH_CONFIG"] = str(config)
    token = token_of_file(token_file) if token_file is not None else None
    watch = configure(Settings(service=Service(token=token)) if token is not None else None)
    say_what_needs_guards(watch.settings)
    places = Places(
        host=host,
        port=port,
        grpc_port=grpc_port if grpc else None,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
        forward=forward,
        state_folder=state_dir,
        certificate=Certificate(tls_certificate, tls_key) if tls_certificate and tls_key else None,
    )
    run_service(watch, metrics_registry(), places, _say_where)


def _say_where(addresses: Addresses) -> None:
    typer.echo(f"OTLP over HTTP on {addresses.http}")
    if addresses.grpc is not None:
        typer.echo(f"OTLP over gRPC on {addresses.grpc}")
    typer.echo(f"metrics on {addresses.metrics}/metrics")

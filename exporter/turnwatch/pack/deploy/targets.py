"""Which servers a deployment goes to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from turnwatch.pack.deploy.changes import DeployError, Target
from turnwatch.pack.deploy.files import alertmanager, prometheus
from turnwatch.pack.deploy.grafana import grafana
from turnwatch.pack.deploy.http import Server

TOKEN_VARIABLES: Final = {
    "Prometheus": "PROMETHEUS_TOKEN",
    "Alertmanager": "ALERTMANAGER_TOKEN",
    "Grafana": "GRAFANA_TOKEN",
}
"""Environment variables of each server's bearer token. Not TURNWATCH_*: those are settings of the exporter."""


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where the parts of a pack go; None where they go nowhere.

    Attributes:
        prometheus_url, rules_folder: Prometheus, and a folder that its rule_files name.
        alertmanager_url, alertmanager_file: Alertmanager, and the file it was started with.
        grafana_url, grafana_folder, grafana_namespace: Grafana, the uid of a folder, and the namespace (12 and later).
        grafana_token_file: Holds the token; None takes it from the environment (GRAFANA_TOKEN).
    """

    prometheus_url: str | None = None
    rules_folder: Path | None = None
    alertmanager_url: str | None = None
    alertmanager_file: Path | None = None
    grafana_url: str | None = None
    grafana_folder: str = "turnwatch"
    grafana_namespace: str = "default"
    grafana_token_file: Path | None = None

    def targets(self, pack: Path) -> list[Target]:
        """Return the servers that parts of ``pack`` go to.

        Raises:
            DeployError: None is named, half of a pair is missing, the token cannot be read, or ``pack`` is no pack.
        """
        try:
            targets = list(self._targets(pack))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DeployError(f"{error.filename} is not there: is {pack} where `pack render` wrote to?") from None
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise DeployError(f"{pack} cannot be read: {type(error).__name__}") from None
        if not targets:
            raise DeployError("name a server: --prometheus-url, --alertmanager-url or --grafana-url")
        return targets

    def _targets(self, pack: Path) -> Iterator[Target]:
        if self.prometheus_url or self.rules_folder:
            if not (self.prometheus_url and self.rules_folder):
                raise DeployError("--prometheus-url and --rules-folder go together")
            yield prometheus(_server("Prometheus", self.prometheus_url), self.rules_folder, pack)
        if self.alertmanager_url or self.alertmanager_file:
            if not (self.alertmanager_url and self.alertmanager_file):
                raise DeployError("--alertmanager-url and --alertmanager-file go together")
            yield alertmanager(_server("Alertmanager", self.alertmanager_url), self.alertmanager_file, pack)
        if self.grafana_url:
            server = _server("Grafana", self.grafana_url, self.grafana_token_file)
            yield grafana(server, self.grafana_folder, pack, namespace=self.grafana_namespace)


def _server(name: str, url: str, token_file: Path | None = None) -> Server:
    """The server, with its token from a file or the environment; an empty variable is none."""
    if token_file is None:
        return Server(url, os.environ.get(TOKEN_VARIABLES[name]) or None)
    try:
        return Server(url, token_file.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise DeployError(f"{token_file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DeployError(f"{token_file} is not text") from None

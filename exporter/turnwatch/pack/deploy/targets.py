"""Which servers a deployment goes to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnwatch.pack.deploy.changes import DeployError, Target
from turnwatch.pack.deploy.files import alertmanager, prometheus
from turnwatch.pack.deploy.grafana import grafana

TOKEN_VARIABLE: Final = "GRAFANA_TOKEN"
"""Environment variable of Grafana's token. Not TURNWATCH_*: those are settings of the exporter."""


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
            DeployError: None is named, half of a pair is missing, or the token cannot be read.
        """
        targets: list[Target] = []
        if self.prometheus_url or self.rules_folder:
            if not (self.prometheus_url and self.rules_folder):
                raise DeployError("--prometheus-url and --rules-folder go together")
            targets.append(prometheus(self.prometheus_url, self.rules_folder, pack))
        if self.alertmanager_url or self.alertmanager_file:
            if not (self.alertmanager_url and self.alertmanager_file):
                raise DeployError("--alertmanager-url and --alertmanager-file go together")
            targets.append(alertmanager(self.alertmanager_url, self.alertmanager_file, pack))
        if self.grafana_url:
            targets.append(
                grafana(self.grafana_url, self._token(), self.grafana_folder, pack, namespace=self.grafana_namespace)
            )
        if not targets:
            raise DeployError("name a server: --prometheus-url, --alertmanager-url or --grafana-url")
        return targets

    def _token(self) -> str | None:
        if self.grafana_token_file is None:
            return os.environ.get(TOKEN_VARIABLE)
        try:
            return self.grafana_token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise DeployError(f"{self.grafana_token_file}: {error.strerror}") from None

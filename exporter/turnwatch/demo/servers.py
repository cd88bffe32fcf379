"""Real Prometheus, Alertmanager and a webhook receiver on free loopback ports, tuned to answer within seconds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from turnwatch.demo import loopback
from turnwatch.demo.process import running
from turnwatch.demo.programs import Programs, find_programs
from turnwatch.demo.webhook import Webhook, receiving

# Prometheus passes on what service discovery found at most every five seconds.
_DISCOVERY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers while they run.

    Attributes:
        prometheus, alertmanager: Their URLs.
        webhook: The receiver of every notification.
        folder: The temporary folder that holds their configuration, data and logs.
    """

    prometheus: str
    alertmanager: str
    webhook: Webhook
    folder: Path

    def scrape(self, targets: Mapping[str, str]) -> None:
        """Have Prometheus scrape exactly these targets and return once each has been scraped.

        Args:
            targets: ``host:port`` by job name. Targets of an earlier call that are not named are dropped.

        Raises:
            TimeoutError: A target was not scraped in time.
        """
        _write_targets(self.folder, targets)
        self._wait_for_discovery(targets)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return Prometheus's instant vector for a PromQL expression."""
        answer = loopback.get_json(f"{self.prometheus}/api/v1/query?query={quote(expression)}")
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def firing(self) -> list[dict[str, str]]:
        """Return the labels of every alert that Prometheus holds for firing."""
        alerts = loopback.get_json(f"{self.prometheus}/api/v1/alerts")["data"]["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]

    def raised(self, **labels: str) -> list[dict[str, str]]:
        """Return the labels of every alert that Alertmanager holds, inhibited ones too, with these labels."""
        matchers = [f'{name}="{value}"' for name, value in labels.items()]
        filters = "&".join(f"filter={quote(matcher)}" for matcher in matchers)
        alerts = loopback.get_json(f"{self.alertmanager}/api/v2/alerts?{filters}")
        return [alert["labels"] for alert in alerts]

    def _wait_for_discovery(self, targets: Mapping[str, str]) -> None:
        def is_done() -> bool:
            found = loopback.get_json(f"{self.prometheus}/api/v1/targets?state=active")["data"]["activeTargets"]
            pagers = loopback.get_json(f"{self.prometheus}/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
            healthy = {target["labels"]["job"] for target in found if target["health"] == "up"}
            return healthy == set(targets) and len(found) == len(targets) and bool(pagers)

        loopback.wait_until(is_done, "Prometheus to scrape its targets", timeout_seconds=_DISCOVERY_SECONDS)


@contextmanager
def serving(
    rules: Path,
    targets: Mapping[str, str],
    *,
    programs: Programs | None = None,
    tell: Callable[[str, str], None] = lambda _who, _what: None,
) -> Iterator[Servers]:
    """Run the servers while the context is open; nothing is left when it closes.

    Args:
        rules: A Prometheus rule file.
        targets: What to scrape: ``host:port`` by job name. It must answer already.
        programs: The server programs; None to look for them on PATH.
        tell: Told what is about to take a while, and of which server.

    Raises:
        ProgramsMissingError: There is no Prometheus or no Alertmanager on this machine.
        ServerFailedError: One of them did not start.
        TimeoutError: Prometheus did not scrape a target in time.
    """
    programs = programs or find_programs()
    with tempfile.TemporaryDirectory(prefix="turnwatch-") as name, receiving() as webhook:
        folder = Path(name)
        _write_targets(folder, targets)
        _write_yaml(folder / "alertmanager.yml", _alertmanager_config(webhook.url))
        tell("alertmanager", "is starting")
        with running_alertmanager(folder, programs=programs) as alertmanager:
            _write_yaml(folder / "prometheus.yml", _prometheus_config(rules, alertmanager.removeprefix("http://")))
            flags = ("--web.enable-lifecycle", "--enable-feature=exemplar-storage")
            tell("prometheus", "is starting")
            with running_prometheus(folder, *flags, programs=programs) as prometheus:
                servers = Servers(prometheus, alertmanager, webhook, folder)
                tell("prometheus", "is looking for what to scrape, which takes it up to ten seconds")
                servers._wait_for_discovery(targets)
                yield servers


def running_prometheus(
    folder: Path, *flags: str, data: Path | str = "prometheus-data", programs: Programs | None = None
) -> AbstractContextManager[str]:
    """Run a Prometheus with the ``prometheus.yml`` of a folder while the context is open; gives its URL.

    Args:
        folder: It runs in this one.
        *flags: Further flags.
        data: Where its blocks are.
        programs: The server programs; None to look for them on PATH.

    Raises:
        ProgramsMissingError: There is no Prometheus or no Alertmanager on this machine.
        ServerFailedError: It did not start.
    """
    command = [
        (programs or find_programs()).prometheus,
        "--config.file=prometheus.yml",
        f"--storage.tsdb.path={data}",
        "--log.level=warn",
        *flags,
    ]
    return running("prometheus", lambda address: [*command, f"--web.listen-address={address}"], folder)


def running_alertmanager(folder: Path, *, programs: Programs | None = None) -> AbstractContextManager[str]:
    """The same for an Alertmanager and the ``alertmanager.yml`` of a folder."""
    command = [
        (programs or find_programs()).alertmanager,
        "--config.file=alertmanager.yml",
        "--storage.path=alertmanager-data",
        "--cluster.listen-address=",  # no gossip: it would look for a non-loopback address and fail without one
        "--log.level=warn",
    ]
    return running("alertmanager", lambda address: [*command, f"--web.listen-address={address}"], folder)


def _prometheus_config(rules: Path, alertmanager: str) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules.resolve())],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [{"job_name": "turnwatch", "file_sd_configs": [{"files": ["targets.json"]}]}],
    }


def _alertmanager_config(webhook_url: str) -> dict[str, Any]:
    return {
        "route": {
            "receiver": "webhook",
            "group_by": ["..."],
            "group_wait": "1s",
            "group_interval": "1s",
            "repeat_interval": "1h",
        },
        "receivers": [{"name": "webhook", "webhook_configs": [{"url": webhook_url, "send_resolved": True}]}],
        "inhibit_rules": [
            {
                "source_matchers": ["severity = critical"],
                "target_matchers": ["severity = warning"],
                "equal": ["alertname", "job", "agent", "tool"],
            }
        ],
    }


def _write_targets(folder: Path, targets: Mapping[str, str]) -> None:
    listed = [{"targets": [address], "labels": {"job": job}} for job, address in targets.items()]
    # Renamed into place: Prometheus may read the file at any moment.
    fresh = folder / "targets.json.new"
    fresh.write_text(json.dumps(listed))
    fresh.rename(folder / "targets.json")


def _write_yaml(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False))

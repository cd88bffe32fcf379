"""``turnwatch serve`` as a process, for agents whose spans come over OTLP."""

import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families


def total(metrics: str, name: str, labels: dict[str, str]) -> float:
    """The sum of a metric's samples that carry these labels, on a page of metrics."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


class Service:
    """A running service; reads what a scrape of it shows.

    Args:
        grace_s: How long a turn stays open after its agent's span.
    """

    def __init__(self, grace_s: float = 0.5) -> None:
        command = [
            str(Path(sys.executable).with_name("turnwatch")),
            "serve",
            "--port",
            "0",
            "--metrics-port",
            "0",
            "--no-grpc",
        ]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TURNWATCH_SERVICE__TURN_GRACE_S": str(grace_s)},
        )
        self.complaints: list[str] = []
        self._reader = threading.Thread(target=self.complaints.extend, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        lines = [self._process.stdout.readline() for _ in range(2)]
        self.otlp, self._metrics = [re.search(r"http://\S+", line)[0] for line in lines]

    def stop(self) -> None:
        """End it, and have everything that it complained of."""
        self._process.terminate()
        self._process.wait(20)
        self._reader.join(5)

    def __call__(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels."""
        with urllib.request.urlopen(self._metrics, timeout=10) as answer:
            return total(answer.read().decode(), name, labels)

    def wait_for(self, name: str, value: float, seconds: float = 60) -> None:
        """Wait until a metric has this value, and fail if it never has."""
        until = time.monotonic() + seconds
        while (found := self(name)) != value:
            assert time.monotonic() < until, f"{name} is {found}"
            time.sleep(0.1)

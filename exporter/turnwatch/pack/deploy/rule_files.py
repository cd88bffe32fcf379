"""Which line of its configuration has a Prometheus read a file of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from turnwatch.core.printable import printable
from turnwatch.pack.deploy.changes import DeployError
from turnwatch.pack.deploy.http import Server
from turnwatch.pack.yaml_text import value_of

_CONFIG_FILE: Final = "prometheus.yml"


def line_to_add(server: Server, path: Path) -> str:
    """Return what to do to the configuration of a Prometheus that does not read ``path``, as a sentence.

    What the server says of itself is named: the file it was started with and what its ``rule_files`` are now. Either
    is left out where it does not say.
    """
    file, patterns = _CONFIG_FILE, ""
    try:
        flags = server.ask("GET", "/api/v1/status/flags").json()["data"]
        file = str(flags["config.file"])
        loaded = value_of(server.ask("GET", "/api/v1/status/config").json()["data"]["yaml"])
        patterns = ", ".join(str(pattern) for pattern in loaded.get("rule_files") or ())
    except (DeployError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        pass
    now = f" (now: {patterns})" if patterns else ""
    return printable(
        f"Add the line `- {path.resolve()}`, or the same file as Prometheus sees it, to rule_files{now} in {file}"
    )

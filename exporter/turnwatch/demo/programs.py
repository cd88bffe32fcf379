"""Which server programs are on this machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from turnwatch.errors import TurnwatchError


class ProgramsMissingError(TurnwatchError):
    """Prometheus or Alertmanager is not on this machine. The message says how to get them."""

    def __init__(self, missing: list[str]) -> None:
        super().__init__(
            f"{' and '.join(missing)} not found on PATH; on Debian: "
            "apt-get install --no-install-recommends prometheus prometheus-alertmanager"
        )
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Programs:
    """Paths of the server programs."""

    prometheus: str
    alertmanager: str


def find_programs() -> Programs:
    """Find the server programs on PATH.

    Raises:
        ProgramsMissingError: One of them, or both, cannot be found.
    """
    prometheus = shutil.which("prometheus")
    # Debian renames the program because it has another alertmanager.
    alertmanager = shutil.which("alertmanager") or shutil.which("prometheus-alertmanager")
    if prometheus is None or alertmanager is None:
        found = {"prometheus": prometheus, "alertmanager": alertmanager}
        raise ProgramsMissingError([name for name, path in found.items() if path is None])
    return Programs(prometheus, alertmanager)

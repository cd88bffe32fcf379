"""Programs for Node, run where their packages are."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


def run(folder: Path, *command: str, environment: Mapping[str, str]) -> None:
    """Run ``node`` with these arguments to its end, which has to be a good one."""
    ran = subprocess.run(
        ["node", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr

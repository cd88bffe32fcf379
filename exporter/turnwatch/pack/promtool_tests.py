"""Runs the promtool tests of a pack."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from turnwatch.errors import TurnwatchError
from turnwatch.pack.home import NoPackError

_SECONDS: Final = 600


class PromtoolMissingError(TurnwatchError):
    """promtool is not on this machine."""

    def __init__(self) -> None:
        super().__init__("promtool not found on PATH; it comes with Prometheus")


def test_files(folder: Path) -> list[Path]:
    """Return the files in ``folder/alert_rules/tests``.

    Raises:
        NoPackError: There is none.
    """
    if files := sorted((folder / "alert_rules" / "tests").glob("*.yaml")):
        return files
    raise NoPackError(
        f"no tests in {folder / 'alert_rules' / 'tests'}: `pack render` writes them, but for a selector that no label"
        " could be made up for"
    )


def failing_tests(folder: Path) -> dict[Path, str]:
    """Run every test file in ``folder/alert_rules/tests`` and return what promtool said of those that fail.

    Raises:
        PromtoolMissingError: There is no promtool.
        NoPackError: There is no test file.
    """
    if not (promtool := shutil.which("promtool")):
        raise PromtoolMissingError
    failing = {}
    for path in test_files(folder):
        answer = subprocess.run(
            [promtool, "test", "rules", str(path)], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if answer.returncode != 0:
            failing[path] = (answer.stdout + answer.stderr).strip()
    return failing

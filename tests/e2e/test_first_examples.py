"""The two examples that README begins with run as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.heavy  # both serve on the port that the documents name
@pytest.mark.parametrize("name", ["by_hand", "with_opentelemetry"])
def test_the_example_runs_to_its_end(name: str):
    ran = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Serving /metrics" in ran.stdout
    assert not ran.stderr

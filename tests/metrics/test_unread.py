"""A process that is forked from the one that serves /metrics, where nothing adds up the two."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
import turnwatch as tw

tw.start_metrics_server(port=0)
for with_agent in (True, False):
    if os.fork() == 0:
        if "own" in sys.argv:
            tw.start_metrics_server(port=0)
        for _ in range(2 if with_agent else 0):
            with tw.turn("bot") as turn:
                turn.call_tool("search", str, 1)
        os._exit(0)
    os.wait()
with tw.turn("parent") as turn:
    turn.call_tool("search", str, 1)
"""


def said_by(*args: str, folder: Path | None = None) -> list[str]:
    env = {key: value for key, value in os.environ.items() if key != "PROMETHEUS_MULTIPROC_DIR"}
    if folder is not None:
        env["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *args], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return run.stderr.splitlines()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
class TestAForkedProcess:
    def test_says_once_that_nobody_reads_what_it_counts(self):
        (line,) = said_by()
        assert "nothing of what it counts is on that page" in line
        assert "PROMETHEUS_MULTIPROC_DIR" in line

    def test_says_nothing_where_the_page_adds_up_all_workers(self, tmp_path):
        assert said_by(folder=tmp_path) == []

    def test_says_nothing_where_it_serves_a_page_of_its_own(self):
        assert said_by("own") == []

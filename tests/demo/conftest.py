"""The command as a process of its own, and what it leaves behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

_COMMAND = [sys.executable, "-c", "from turnwatch.cli import main; main()"]
_GONE_SECONDS = 10


class Demo:
    """Starts ``turnwatch demo`` with temporary files in a folder of its own, by which its processes are known."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, *arguments, **environment):
        return subprocess.Popen(
            [*_COMMAND, "demo", *arguments],
            env={**os.environ, "TMPDIR": str(self.folder), "COLUMNS": "200", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def running(self):
        """Command lines of the processes that work in the folder."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if str(process.joinpath("cwd").readlink()).startswith(str(self.folder)):
                    found.append(process.joinpath("cmdline").read_text().replace("\0", " "))
            except OSError:  # it ended meanwhile, or is another user's
                continue
        return found

    def left_running(self):
        """What still runs after a while in which it may end."""
        deadline = time.monotonic() + _GONE_SECONDS
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.running()


@pytest.fixture
def demo(tmp_path):
    return Demo(tmp_path)

"""The ten-line starts do what the README says of them."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_SECONDS = 30


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("example", ["by_hand.py", "with_opentelemetry.py"])
def test_the_third_identical_call_is_on_the_metrics_page(example):
    port = free_port()
    source = (EXAMPLES / example).read_text(encoding="utf-8").replace("9464", str(port))
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with process:
        wanted = 'agent_duplicate_tool_calls_total{agent="support-bot",tool="search_orders"} 1.0'
        page = ""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while wanted not in page and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    page = answer.read().decode()
            except OSError:
                time.sleep(0.05)
        process.stdin.write(b"\n")
    assert wanted in page
    assert process.returncode == 0

"""The two examples that README begins with do what it says of them, and complain of nothing."""

import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_SECONDS = 120
ON_A_FREE_PORT = """\
import prometheus_client

def start_and_say_where(port, *more, start=prometheus_client.start_http_server):
    server = start(0, *more)
    print("port", server[0].server_port)
    return server

prometheus_client.start_http_server = start_and_say_where
"""


@pytest.mark.parametrize("example", ["by_hand.py", "with_opentelemetry.py"])
def test_the_third_identical_call_is_on_the_metrics_page(example):
    source = ON_A_FREE_PORT + (EXAMPLES / example).read_text(encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    too_long = threading.Timer(PATIENCE_SECONDS, process.kill)
    too_long.daemon = True
    too_long.start()
    with process:
        said = []
        # It says so when all its calls are made.
        while not (said and said[-1].startswith("Serving /metrics")):
            said.append(process.stdout.readline())
            assert said[-1], "".join(said) + process.stderr.read()
        port = next(line.split()[1] for line in said if line.startswith("port "))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_SECONDS) as answer:
            page = answer.read().decode()
        process.stdin.close()
        assert (process.stderr.read(), process.wait()) == ("", 0)
    too_long.cancel()
    assert 'agent_duplicate_tool_calls_total{agent="support-bot",tool="search_orders"} 1.0' in page

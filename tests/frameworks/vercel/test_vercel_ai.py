"""The Vercel AI SDK in a Node process, whose spans go to ``turnwatch serve`` as OTLP JSON over HTTP."""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from frameworks import stub_model
from frameworks.stub_model import TOOL

HERE = Path(__file__).parent


class Service:
    """``turnwatch serve`` as a process."""

    def __init__(self) -> None:
        command = [
            str(Path(sys.executable).with_name("turnwatch")),
            "serve",
            "--port",
            "0",
            "--metrics-port",
            "0",
            "--no-grpc",
        ]
        # Turns end soon after their span, for the sake of the test.
        settings = {"TURNWATCH_SERVICE__TURN_GRACE_S": "0.5"}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings})
        lines = [self._process.stdout.readline() for _ in range(2)]
        self.otlp, metrics = [re.search(r"http://\S+", line)[0] for line in lines]
        self._metrics = metrics

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def __call__(self, name: str, **labels: str) -> float:
        with urllib.request.urlopen(self._metrics, timeout=10) as answer:
            text = answer.read().decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def wait_for(self, name: str, value: float) -> None:
        for _ in range(200):
            if self(name) == value:
                return
            subprocess.run(["sleep", "0.1"], check=True)
        raise AssertionError(f"{name} is {self(name)}")


@pytest.fixture
def service():
    service = Service()
    yield service
    service.stop()


@pytest.mark.parametrize("way", ["generate", "stream"])
@pytest.mark.parametrize(
    ("script", "tool_calls", "duplicates"), [(stub_model.healthy, 2, 0), (stub_model.loop, 12, 10)]
)
def test_counters_are_right(model, service, way, script, tool_calls, duplicates):
    model.script = script
    ran = subprocess.run(
        ["node", "agent.mjs", way],
        cwd=HERE,
        env={**os.environ, "MODEL_URL": model.url, "OTLP_URL": service.otlp},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    service.wait_for("agent_turns_total", 1)
    assert service("agent_tool_calls_total", agent="support-bot", tool=TOOL, outcome="ok") == tool_calls
    assert service("agent_duplicate_tool_calls_total", agent="support-bot", tool=TOOL) == duplicates
    assert service("agent_iterations_sum", agent="support-bot") == tool_calls + 1
    assert service("agent_tokens_total", agent="support-bot", type="input") == 1000 * (tool_calls + 1)
    assert service("agent_tokens_total", agent="support-bot", type="output") == 100 * (tool_calls + 1)
    assert service("turnwatch_internal_errors_total") == 0

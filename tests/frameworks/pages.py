"""The pages of docs/frameworks, run as their readers would: every block as it stands, against the stub model."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.ports import kept_port

from frameworks import stub_model
from frameworks.served import total

DOCS = Path(__file__).resolve().parents[2] / "docs" / "frameworks"

# The last line of a page's script, which keeps its counts to be looked at.
WAITS = 'input("Counts, until you press Enter: http://127.0.0.1:9464/metrics ")\n'

# What a page's script shows at its end to who scrapes it: while it waits, and when every turn has ended.
_SCRAPE = """

import re
import time
import urllib.request
from opentelemetry import trace


def scraped():
    return urllib.request.urlopen("http://127.0.0.1:{port}/metrics").read().decode()


given_up = time.monotonic() + 30
while not re.search("^agent_turns_total.* [1-9]", scraped(), re.MULTILINE) and time.monotonic() < given_up:
    time.sleep(0.1)
print("--- waiting", scraped(), "--- end", sep="\\n")
trace.get_tracer_provider().shutdown()  # ends every turn
print("--- ended", scraped(), "--- end", sep="\\n")
"""


def blocks(page: str, title: str, language: str) -> list[str]:
    """The blocks of code in one section of a page."""
    section = (DOCS / f"{page}.md").read_text().split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def exports(page: str) -> dict[str, str]:
    """The environment variables that a page has its reader set."""
    lines = [line for block in blocks(page, "Install", "sh") for line in block.splitlines()]
    pairs = [pair for line in lines if line.startswith("export ") for pair in line.split()[1:]]
    return dict(pair.split("=", 1) for pair in pairs)


def surroundings(model: stub_model.StubModel, home: Path) -> dict[str, str]:
    """Environment variables by which every client finds the stub instead of its vendor."""
    return {
        **os.environ,
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_BASE": f"{model.url}/v1",
        "ANTHROPIC_BASE_URL": model.url,
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "HOME": str(home),
        "CREWAI_STORAGE_DIR": str(home),
        "CREWAI_TRACING_ENABLED": "false",
    }


class Shown:
    """What a scrape of a script showed after one of its parts.

    Args:
        metrics: When all turns had ended.
        waiting: While the script waited to be looked at.
    """

    def __init__(self, metrics: str, waiting: str = "") -> None:
        self._metrics = metrics
        self.waiting = waiting and Shown(waiting)

    def __call__(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels."""
        return total(self._metrics, name, labels)


def run(page: str, model: stub_model.StubModel, home: Path, *parts: str) -> list[Shown]:
    """Run code of a page as one script, and scrape it after each part."""
    script = home / "agent.py"
    with kept_port() as port:
        script.write_text(
            "".join(part.replace("port=9464", f"port={port}") + _SCRAPE.format(port=port) for part in parts)
        )
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", str(script)],
            env=surroundings(model, home) | exports(page),
            cwd=home,
            input="\n" * len(parts),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr[-4000:]
    shown = re.findall(r"--- waiting\n(.*?)--- end\n--- ended\n(.*?)--- end\n", ran.stdout, re.DOTALL)
    return [Shown(ended, waiting) for waiting, ended in shown]


def first_healthy_then_a_loop(number: int, request: stub_model.Request) -> stub_model.Reply:
    """For a page's first script and its guard behind it: two calls and an answer, then a loop until a nudge."""
    if number <= 3:
        return stub_model.healthy(number, request)
    return stub_model.loop_until_nudged(number - 3, request)


def check(page: str, model: stub_model.StubModel, home: Path, agent: str, then: str = "", **counted: Any) -> None:
    """Assert that a page's first script counts all that its agent does, and that its guard ends a loop.

    Args:
        page, model, home: See ``run``; the model follows ``first_healthy_then_a_loop``.
        agent: The name under which the first script's agent is counted.
        then: What runs the agent, where the guard's block does not.
        **counted: See ``check_counts``.
    """
    guard = blocks(page, "Guard", "python")[0]
    (script,) = blocks(page, "Install", "python")
    assert script.endswith(WAITS)
    counts, guarded = run(page, model, home, script, f"{guard}\n{then}")
    check_counts(counts, agent, **counted)
    assert any(request.was_nudged for request in model.requests)
    assert len(model.requests) <= 3 + 6
    assert guarded("agent_loops_detected_total") > 0
    assert guarded("turnwatch_internal_errors_total") == 0


def check_script(page: str, model: stub_model.StubModel, home: Path, agent: str, **counted: Any) -> None:
    """Assert that the script of a page without a guard counts all that its agent does: see ``check``."""
    (script,) = blocks(page, "Install", "python")
    assert script.endswith(WAITS)
    (counts,) = run(page, model, home, script)
    check_counts(counts, agent, **counted)


def check_counts(
    counts: Shown, agent: str, *, tool: str = stub_model.TOOL, model_calls: int = 3, has_usage: bool = True
) -> None:
    """Assert that a healthy turn, and nothing else, was counted: two tool calls, and what the model was asked.

    Args:
        counts: What the script showed.
        agent, tool: The names under which they are counted.
        model_calls: How often the agent asks its model.
        has_usage: Whether the spans tell of tokens.
    """
    assert counts.waiting("agent_turns_total", agent=agent) == 1
    assert counts.waiting("agent_tool_calls_total", agent=agent, tool=tool) == 2
    assert counts("agent_turns_total", agent=agent, stop_reason="final_answer") == counts("agent_turns_total") == 1
    assert counts("agent_tool_calls_total", agent=agent, tool=tool, outcome="ok") == 2
    assert counts("agent_tool_calls_total") == 2
    assert counts("agent_model_calls_total", agent=agent) == counts("agent_model_calls_total") == model_calls
    with_usage = model_calls if has_usage else 0
    assert counts("agent_model_calls_without_usage_total") == model_calls - with_usage
    assert counts("agent_tokens_total", agent=agent, type="input") == with_usage * stub_model.INPUT_TOKENS
    assert counts("agent_tokens_total", agent=agent, type="output") == with_usage * stub_model.OUTPUT_TOKENS
    assert counts("turnwatch_fingerprint_missing_total") == counts("turnwatch_internal_errors_total") == 0

"""From a tool call in one process to a notification in another, through real Prometheus and Alertmanager."""

import subprocess
import sys
from pathlib import Path

import pytest

from turnwatch.demo.loopback import wait_until

ALERT = "AgentDuplicateToolCalls"
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def agents(servers, window_seconds):
    """The scripted agents in a process of their own, started once Prometheus scrapes it."""
    script = Path(__file__).with_name("scripted_agents.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(window_seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            port = process.stdout.readline().strip()
            servers.scrape({"scripted-agents": f"127.0.0.1:{port}"})
            process.stdin.write("go\n")
            process.stdin.flush()
            yield
        finally:
            process.stdin.close()


def notification(servers, agent, status="firing", **labels):
    wanted = {"alertname": ALERT, "agent": agent, **labels}

    def is_wanted(one):
        return one.status == status and wanted.items() <= one.labels.items()

    return servers.webhook.wait_for(is_wanted, timeout_seconds=PATIENCE_SECONDS)


def test_a_loop_whose_results_stay_the_same_pages(servers):
    page = notification(servers, "stuck")
    assert page is not None
    assert page.labels["severity"] == "critical"
    assert page.labels["tool"] == "search"
    assert page.labels["job"] == "scripted-agents"
    assert page.annotations["runbook_url"].endswith(f"/{ALERT}.md")
    assert "var-agent=stuck" in page.annotations["dashboard_url"]
    assert "stuck keeps calling search" in page.annotations["description"]


def test_the_same_calls_with_changing_results_are_a_warning(servers):
    page = notification(servers, "progressing")
    assert page is not None
    assert page.labels["severity"] == "warning"


def test_the_same_calls_whose_results_nobody_saw_are_a_warning(servers):
    page = notification(servers, "unseen")
    assert page is not None
    assert page.labels["severity"] == "warning"


def test_nothing_is_raised_about_an_agent_that_asks_twice(servers):
    assert notification(servers, "stuck") is not None
    calls = 'agent_tool_calls_total{agent="healthy",outcome="ok"} == 40'
    wait_until(lambda: bool(servers.query(calls)), "all calls to be scraped", timeout_seconds=PATIENCE_SECONDS)
    assert servers.raised(agent="healthy") == []
    assert [one for one in servers.webhook.received if one.labels.get("agent") == "healthy"] == []


def test_a_page_is_taken_back_once_the_window_has_passed(servers):
    assert notification(servers, "stuck", status="resolved", severity="critical") is not None
    # The other alerts of the same turn end in the same moments, not in the same one.
    wait_until(
        lambda: not any(labels.get("agent") == "stuck" for labels in servers.firing()),
        "every alert about the agent to end",
        timeout_seconds=PATIENCE_SECONDS,
    )

"""What an agent does, through exporter, Prometheus and Alertmanager to a webhook, for every alert that comes fast.

Two look back over days, AgentSpendGrowth and AgentToolCallsPerTurnSpike; promtool tests them. Four look back over a
quarter of an hour (rates of errors, time and spend), so their end is not waited for here.
"""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from misbehaving_agents import BEHAVIOURS
from tests.ports import kept_port

from turnwatch.demo.servers import serving
from turnwatch.pack.render import rule_file

# Traced, the agents would be too slow on a busy machine for what they do to be within the window.
pytestmark = pytest.mark.untraced

WINDOW_SECONDS = 20
PATIENCE_SECONDS = 60
SHORT = {
    "window": f"{WINDOW_SECONDS}s",
    "keepFiringFor": "2s",
    "targetDownFor": "2s",
    "thresholds": {"turnSeconds": {"warning": 1}, "openTurnSeconds": {"warning": 3}},
}
WITHOUT_AGENT = {"AgentUnpricedModel", "AgentWatchDegraded"}
OVER_A_QUARTER_OF_AN_HOUR = {
    "AgentModelErrorsHigh",
    "AgentToolErrorsHigh",
    "AgentTurnLatencyHigh",
    "AgentSpendRateHigh",
}
OVER_DAYS = {"AgentSpendGrowth", "AgentToolCallsPerTurnSpike"}
ABSENT = "AgentMetricsAbsent"


@contextmanager
def process(*arguments):
    """Run a process that serves metrics and prints its port, until the end of the context."""
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running, running.stdout.readline().strip()
        finally:
            running.stdin.close()


def idle_process(port):
    """A process whose agents do nothing."""
    program = (
        "import sys, turnwatch as tw; server, _ = tw.start_metrics_server(port=int(sys.argv[1]));"
        "print(server.server_port, flush=True); sys.stdin.read()"
    )
    return process("-c", program, str(port))


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "rules.yaml"
    rules.write_text(rule_file(SHORT), encoding="utf-8")
    with serving(rules, {}) as running:
        yield running


@pytest.fixture(scope="module")
def port_of_gone(servers):
    """The port of a process that Prometheus has scraped and that is gone; the agents misbehave by then."""
    script = Path(__file__).with_name("misbehaving_agents.py")
    with kept_port() as port_of_idle, process(str(script), str(WINDOW_SECONDS)) as (agents, port):
        with idle_process(port_of_idle):
            servers.scrape({"agents": f"127.0.0.1:{port}", "idle": f"127.0.0.1:{port_of_idle}"})
        agents.stdin.write("go\n")
        agents.stdin.flush()
        yield port_of_idle


@pytest.fixture
def webhook(servers, port_of_gone):
    return servers.webhook


def wait_for(webhook, alert, status):
    labels = {"alertname": alert, "job": "agents"} | ({} if alert in WITHOUT_AGENT else {"agent": alert})
    if alert == ABSENT:
        labels = {"alertname": alert, "job": "idle"}
    found = webhook.wait_for(
        lambda one: one.status == status and labels.items() <= one.labels.items(), timeout_seconds=PATIENCE_SECONDS
    )
    assert found is not None, f"{alert} was not {status}"
    return found


def test_no_alert_is_left_out(alerts):
    assert {alert["alert"] for alert in alerts} == {*BEHAVIOURS, ABSENT, *OVER_DAYS}


@pytest.mark.parametrize("alert", [*BEHAVIOURS, ABSENT])
def test_the_behaviour_reaches_the_webhook(webhook, alert):
    annotations = wait_for(webhook, alert, "firing").annotations
    assert annotations["runbook_url"].endswith(f"/{alert}.md")
    assert "<no value>" not in str(annotations)


@pytest.mark.parametrize("alert", sorted(BEHAVIOURS.keys() - OVER_A_QUARTER_OF_AN_HOUR))
def test_it_is_taken_back_when_the_window_has_passed(webhook, alert):
    wait_for(webhook, alert, "resolved")


def test_a_target_that_comes_back_is_no_longer_missed(webhook, port_of_gone):
    wait_for(webhook, ABSENT, "firing")
    with idle_process(port_of_gone):
        wait_for(webhook, ABSENT, "resolved")

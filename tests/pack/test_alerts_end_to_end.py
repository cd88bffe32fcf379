"""What an agent does, through exporter, Prometheus and Alertmanager to a webhook, for every alert that comes fast.

The others look back over days (AgentSpendGrowth, AgentToolCallsPerTurnSpike) or wait two minutes
(AgentMetricsAbsent); promtool tests them.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from misbehaving_agents import BEHAVIOURS

from turnwatch.demo.servers import serving
from turnwatch.pack.render import rule_file

WINDOW_SECONDS = 20
PATIENCE_SECONDS = 60
SHORT = {
    "window": f"{WINDOW_SECONDS}s",
    "keepFiringFor": "2s",
    "thresholds": {"turnSeconds": {"warning": 1}, "openTurnSeconds": {"warning": 3}},
}
WITHOUT_AGENT = {"AgentUnpricedModel", "AgentWatchDegraded"}
RESOLVE_SOON = {"AgentDuplicateToolCalls", "AgentLoopDetected", "AgentIterationsHigh", "AgentStoppedByGuard"}


@pytest.fixture(scope="module")
def webhook(tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "rules.yaml"
    rules.write_text(rule_file(SHORT), encoding="utf-8")
    script = Path(__file__).with_name("misbehaving_agents.py")
    with (
        serving(rules, {}) as servers,
        subprocess.Popen(
            [sys.executable, str(script), str(WINDOW_SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        port = process.stdout.readline().strip()
        servers.scrape({"agents": f"127.0.0.1:{port}"})
        process.stdin.write("go\n")
        process.stdin.flush()
        yield servers.webhook
        process.stdin.close()


def wait_for(webhook, alert, status):
    labels = {"alertname": alert, "job": "agents"} | ({} if alert in WITHOUT_AGENT else {"agent": alert})
    found = webhook.wait_for(
        lambda one: one.status == status and labels.items() <= one.labels.items(), timeout_seconds=PATIENCE_SECONDS
    )
    assert found is not None, f"{alert} was not {status}"
    return found


@pytest.mark.parametrize("alert", BEHAVIOURS)
def test_the_behaviour_reaches_the_webhook(webhook, alert):
    annotations = wait_for(webhook, alert, "firing").annotations
    assert annotations["runbook_url"].endswith(f"/{alert}.md")
    assert "<no value>" not in str(annotations)


@pytest.mark.parametrize("alert", sorted(RESOLVE_SOON))
def test_it_is_taken_back_when_the_window_has_passed(webhook, alert):
    wait_for(webhook, alert, "resolved")

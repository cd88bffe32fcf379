"""The Alertmanager example on the real amtool and Alertmanager."""

import datetime
import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
import yaml

from turnwatch.demo.loopback import get_json, wait_until
from turnwatch.demo.servers import running_alertmanager
from turnwatch.pack.render import ALERTMANAGER_FILE, TEMPLATE_FILE


@pytest.fixture(scope="module")
def config(home):
    return str(home / ALERTMANAGER_FILE)


def amtool(*arguments):
    return subprocess.run(["amtool", *arguments], capture_output=True, text=True, timeout=60)


def test_amtool_accepts_it(config):
    answer = amtool("check-config", config)
    assert answer.returncode == 0, answer.stderr


def test_every_alert_goes_to_the_receiver_of_its_severity(config, alerts):
    receivers = {"critical": "agents-page", "warning": "agents-chat", "info": "unrouted"}
    for alert, severity in {(rule["alert"], rule["labels"]["severity"]) for rule in alerts}:
        answer = amtool(
            "config", "routes", "test", f"--config.file={config}", f"--verify.receivers={receivers[severity]}",
            f"alertname={alert}", f"severity={severity}", "agent=support",
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout + answer.stderr


def test_alerts_of_others_are_left_alone(config):
    answer = amtool(
        "config", "routes", "test", f"--config.file={config}", "--verify.receivers=unrouted",
        "alertname=NodeDown", "severity=critical",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr


COMMON = {"alertname": "AgentDuplicateToolCalls", "agent": "support", "tool": "search"}
TEXTS = {
    "receiver": "agents-chat",
    "status": "firing",
    "alerts": [
        {
            "status": "firing",
            "labels": {**COMMON, "severity": "critical"},
            "annotations": {
                "description": "Agent support keeps calling search.",
                "turn_spend": "0.41 USD",
                "dashboard_url": "http://grafana/d/turnwatch-loops",
                "runbook_url": "http://runbooks/AgentDuplicateToolCalls.md",
            },
            "startsAt": "2026-01-02T03:04:05Z",
        },
        {
            "status": "resolved",
            "labels": {"alertname": "AgentMetricsAbsent", "severity": "warning"},
            "annotations": {"description": "Target a:9464 is down.", "turn_spend": ""},
            "startsAt": "2026-01-02T03:04:05Z",
            "endsAt": "2026-01-02T03:14:05Z",
        },
    ],
    "commonLabels": COMMON,
}


def rendered(home, tmp_path, template, data):
    path = tmp_path / "data.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    answer = amtool(
        "template", "render", f"--template.glob={home / TEMPLATE_FILE}", f"--template.data={path}",
        f'--template.text={{{{ template "{template}" . }}}}',
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_notification_says_agent_tool_times_dollars_and_where_to_look(home, tmp_path):
    assert rendered(home, tmp_path, "turnwatch.title", TEXTS) == (
        "[FIRING:1] AgentDuplicateToolCalls | support | search"
    )
    assert rendered(home, tmp_path, "turnwatch.text", TEXTS).splitlines() == [
        "CRITICAL AgentDuplicateToolCalls",
        "Agent support keeps calling search.",
        "Dearest turn so far: 0.41 USD.",
        "Since 03:04:05 UTC.",
        "Dashboard: http://grafana/d/turnwatch-loops",
        "Runbook: http://runbooks/AgentDuplicateToolCalls.md",
        "",
        "WARNING AgentMetricsAbsent",
        "Target a:9464 is down.",
        "Since 03:04:05 UTC, over at 03:14:05 UTC.",
    ]


def test_a_group_of_different_alerts_has_a_title(home, tmp_path):
    assert rendered(home, tmp_path, "turnwatch.title", TEXTS | {"commonLabels": {}}) == "[FIRING:1] Agent alerts"


@pytest.fixture(scope="module")
def alertmanager(config, tmp_path_factory):
    """A real Alertmanager with the example's routes and inhibition; its receivers lead nowhere."""
    folder = tmp_path_factory.mktemp("alertmanager")
    document = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    document["receivers"] = [{"name": receiver["name"]} for receiver in document["receivers"]]
    document["templates"] = []
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    with running_alertmanager(folder) as url:
        yield url


def until(condition, patience_seconds=20):
    """Wait until the condition holds."""
    wait_until(condition, "the alerts to be inhibited", timeout_seconds=patience_seconds)


def post(url, *alerts):
    now = datetime.datetime.now(datetime.UTC).isoformat()
    body = [{"labels": labels, "startsAt": now} for labels in alerts]
    session = requests.Session()
    session.trust_env = False  # a proxy is for the world outside
    session.post(f"{url}/api/v2/alerts", json=body, timeout=5).raise_for_status()


def inhibited(url, agent):
    agents_alerts = quote(f'agent="{agent}"')
    found = get_json(f"{url}/api/v2/alerts?filter={agents_alerts}")
    return {
        (alert["labels"]["alertname"], alert["labels"]["severity"], alert["labels"].get("tool", ""))
        for alert in found
        if alert["status"]["inhibitedBy"]
    }


def test_the_critical_alert_silences_the_warning_of_the_same_agent_and_tool(alertmanager):
    duplicate = {"alertname": "AgentDuplicateToolCalls", "agent": "a", "job": "bots"}
    post(
        alertmanager,
        duplicate | {"severity": "critical", "tool": "search"},
        duplicate | {"severity": "warning", "tool": "search"},
        duplicate | {"severity": "warning", "tool": "fetch"},
    )
    until(lambda: inhibited(alertmanager, "a") == {("AgentDuplicateToolCalls", "warning", "search")})


def test_a_stuck_verdict_silences_the_warning_about_its_calls(alertmanager):
    labels = {"agent": "e", "job": "bots", "tool": "search"}
    post(
        alertmanager,
        labels | {"alertname": "AgentLoopDetected", "severity": "critical", "kind": "cycle"},
        labels | {"alertname": "AgentDuplicateToolCalls", "severity": "warning"},
    )
    until(lambda: inhibited(alertmanager, "e") == {("AgentDuplicateToolCalls", "warning", "search")})


def test_a_stuck_turn_silences_its_iterations_but_not_its_spend(alertmanager):
    labels = {"agent": "b", "job": "bots"}
    post(
        alertmanager,
        labels | {"alertname": "AgentDuplicateToolCalls", "severity": "critical", "tool": "search"},
        labels | {"alertname": "AgentIterationsHigh", "severity": "critical"},
        labels | {"alertname": "AgentTurnSpendHigh", "severity": "critical"},
    )
    until(lambda: inhibited(alertmanager, "b") == {("AgentIterationsHigh", "critical", "")})


def test_a_stuck_turn_silences_what_its_calls_do_to_its_conversation(alertmanager):
    labels = {"agent": "f", "job": "bots"}
    runaway = labels | {"alertname": "AgentConversationRunaway"}
    post(
        alertmanager,
        labels | {"alertname": "AgentLoopDetected", "severity": "critical", "tool": "search", "kind": "stale_repeat"},
        runaway | {"severity": "warning"},
        runaway | {"severity": "critical"},
        runaway | {"severity": "critical", "agent": "g"},
    )
    both = {("AgentConversationRunaway", severity, "") for severity in ("warning", "critical")}
    until(lambda: inhibited(alertmanager, "f") == both)
    assert inhibited(alertmanager, "g") == set()


def test_another_agent_is_not_silenced(alertmanager):
    iterations = {"alertname": "AgentIterationsHigh", "job": "bots"}
    post(
        alertmanager,
        iterations | {"severity": "critical", "agent": "c"},
        iterations | {"severity": "warning", "agent": "c"},
        iterations | {"severity": "warning", "agent": "d"},
    )
    until(lambda: inhibited(alertmanager, "c") == {("AgentIterationsHigh", "warning", "")})
    assert inhibited(alertmanager, "d") == set()

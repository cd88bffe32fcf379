"""The Alertmanager example on the real amtool and Alertmanager."""

import datetime
import shutil
import socket
import subprocess
import time

import pytest
import requests

from turnwatch.pack.render import ALERTMANAGER_FILE


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


@pytest.fixture(scope="module")
def alertmanager(config, tmp_path_factory):
    """A real Alertmanager with the example; its receivers lead nowhere."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binary = shutil.which("alertmanager") or "prometheus-alertmanager"
    process = subprocess.Popen(
        [
            binary, f"--config.file={config}", f"--storage.path={tmp_path_factory.mktemp('alertmanager')}",
            f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with process:
        try:
            until(lambda: requests.get(f"{url}/-/ready", timeout=2).ok)
            yield url
        finally:
            process.terminate()


def until(condition, patience_seconds=20):
    """Wait until the condition holds."""
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except requests.ConnectionError:
            pass
        time.sleep(0.1)
    raise AssertionError("it did not come true")


def post(url, *alerts):
    now = datetime.datetime.now(datetime.UTC).isoformat()
    body = [{"labels": labels, "startsAt": now} for labels in alerts]
    requests.post(f"{url}/api/v2/alerts", json=body, timeout=5).raise_for_status()


def inhibited(url, agent):
    found = requests.get(f"{url}/api/v2/alerts", params={"filter": f'agent="{agent}"'}, timeout=5).json()
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


def test_a_stuck_turn_silences_its_iterations_but_not_its_spend(alertmanager):
    labels = {"agent": "b", "job": "bots"}
    post(
        alertmanager,
        labels | {"alertname": "AgentDuplicateToolCalls", "severity": "critical", "tool": "search"},
        labels | {"alertname": "AgentIterationsHigh", "severity": "critical"},
        labels | {"alertname": "AgentTurnSpendHigh", "severity": "critical"},
    )
    until(lambda: inhibited(alertmanager, "b") == {("AgentIterationsHigh", "critical", "")})


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

"""Servers are found, started on free ports, waited for and stopped."""

import json
import sys
import urllib.request

import pytest

from turnwatch.demo import loopback
from turnwatch.demo.process import ServerFailedError, running
from turnwatch.demo.programs import ProgramsMissingError, find_programs
from turnwatch.demo.servers import serving
from turnwatch.demo.webhook import receiving


@pytest.fixture
def always_ready(tmp_path):
    """A folder that a plain file server serves as if it were one of ours: /-/ready is a file."""
    ready = tmp_path / "-" / "ready"
    ready.parent.mkdir()
    ready.write_text("ready")
    return tmp_path


def file_server(address):
    host, port = address.split(":")
    return [sys.executable, "-m", "http.server", "--bind", host, port]


def executable(path):
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_a_server_runs_while_the_context_is_open(always_ready):
    with running("files", file_server, always_ready) as url:
        assert loopback.get(f"{url}/-/ready") == "ready"
    with pytest.raises(OSError, match="refused"):
        loopback.get(f"{url}/-/ready")


def test_another_port_is_tried_when_the_first_was_taken_meanwhile(always_ready):
    tried = []

    def taken_at_first(address):
        tried.append(address)
        if len(tried) == 1:
            return ["sh", "-c", "echo listen tcp: bind: address already in use; exit 1"]
        return file_server(address)

    with running("files", taken_at_first, always_ready) as url:
        assert url == f"http://{tried[1]}"


def test_a_server_that_ends_at_once_is_an_error_with_the_end_of_its_log(tmp_path):
    with (
        pytest.raises(ServerFailedError, match=r"broken did not start:\nno such rule$"),
        running("broken", lambda address: ["sh", "-c", "echo no such rule; exit 1"], tmp_path),
    ):
        pass


def test_a_server_that_is_not_ready_in_time_is_an_error_and_is_stopped(demo, tmp_path, monkeypatch):
    monkeypatch.setattr("turnwatch.demo.process._START_SECONDS", 0.2)
    with (
        pytest.raises(ServerFailedError, match="silent did not start"),
        running("silent", lambda address: ["sleep", "60"], tmp_path),
    ):
        pass
    assert demo.running() == []


def test_a_server_that_will_not_end_is_killed(always_ready, monkeypatch):
    monkeypatch.setattr("turnwatch.demo.process._STOP_SECONDS", 0.2)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); from runpy import run_module; "
    serve = "run_module('http.server', run_name='__main__')"
    with running(
        "stubborn",
        lambda address: [sys.executable, "-c", stubborn + serve, "--bind", *address.split(":")],
        always_ready,
    ) as url:
        assert loopback.get(f"{url}/-/ready")
    with pytest.raises(OSError, match="refused"):
        loopback.get(url)


def test_rules_that_prometheus_refuses_are_named(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps({"groups": [{"name": "broken", "rules": [{"alert": "A", "expr": "1 +"}]}]}))
    with pytest.raises(ServerFailedError, match=r"prometheus did not start:(.|\n)*rules.yaml"), serving(rules, {}):
        pass


def test_alertmanager_is_found_by_debians_name_too(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    executable(tmp_path / "prometheus")
    executable(tmp_path / "prometheus-alertmanager")
    assert find_programs().alertmanager == str(tmp_path / "prometheus-alertmanager")
    executable(tmp_path / "alertmanager")
    assert find_programs().alertmanager == str(tmp_path / "alertmanager")


def test_only_what_is_missing_is_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    executable(tmp_path / "alertmanager")
    with pytest.raises(ProgramsMissingError, match=r"^prometheus not found") as raised:
        find_programs()
    assert raised.value.missing == ["prometheus"]


def test_waiting_for_what_never_comes_is_an_error_that_says_what():
    def refuses():
        raise OSError("connection refused")

    with pytest.raises(TimeoutError, match="the moon"):
        loopback.wait_until(refuses, "the moon", timeout_seconds=0.1)


def test_notifications_are_kept_for_those_who_ask_later():
    alert = {"status": "firing", "labels": {"alertname": "A"}, "annotations": {"summary": "S."}}
    with receiving() as webhook:
        assert webhook.wait_for(lambda one: True, timeout_seconds=0) is None
        body = json.dumps({"alerts": [alert, {**alert, "status": "resolved"}]}).encode()
        urllib.request.urlopen(urllib.request.Request(webhook.url, body), timeout=5).close()
        resolved = webhook.wait_for(lambda one: one.status == "resolved", timeout_seconds=5)
        assert resolved.labels == {"alertname": "A"}
        assert [one.status for one in webhook.received] == ["firing", "resolved"]

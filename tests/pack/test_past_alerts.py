"""Alerts as recording rules, for promtool, which evaluates only those in the past."""

import subprocess

import pytest
import yaml

from turnwatch.pack.past_alerts import past_alerts
from turnwatch.pack.render import RULES_FILE, pack_files


@pytest.fixture(scope="module")
def files():
    return pack_files({"recordingRules": True})


@pytest.fixture(scope="module")
def recorded(files):
    (text,) = past_alerts(files).values()
    return yaml.safe_load(text)["groups"]


def test_prometheus_takes_them_and_they_do_not_say_how_often(recorded, tmp_path):
    path = tmp_path / "alerts.yaml"
    path.write_text(yaml.safe_dump({"groups": recorded}), encoding="utf-8")
    checked = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    assert all(group.keys() == {"name", "rules"} for group in recorded)


def test_every_alert_is_recorded_as_prometheus_names_it_and_recording_rules_stay(files, recorded):
    groups = yaml.safe_load(files[RULES_FILE])["groups"]
    assert [group["name"] for group in recorded] == [group["name"] for group in groups]
    for group, past in zip(groups, recorded, strict=True):
        for rule, record in zip(group["rules"], past["rules"], strict=True):
            if "alert" in rule:
                assert record["record"] == "ALERTS"
                assert record["labels"] == {**rule["labels"], "alertname": rule["alert"], "alertstate": "firing"}
            else:
                assert record == rule


def test_an_alert_that_waits_is_recorded_when_its_condition_has_lasted(recorded):
    (expr,) = [
        rule["expr"]
        for group in recorded
        for rule in group["rules"]
        if rule.get("labels", {}).get("alertname") == "AgentSpendGrowth"
    ]
    assert "[6h:3600s]) >= 6" in expr

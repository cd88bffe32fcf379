"""The rules do on Prometheus what their names say."""

import re

import pytest
import yaml
from promtool import run_promtool

from turnwatch.pack.home import pack_home
from turnwatch.pack.render import RULES_FILE

FILES = sorted((pack_home() / "alert_rules" / "tests").glob("*.yaml"))
KINDS = ("positive", "negative", "restart")


def seconds(duration):
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([smhd])", duration))


def expectations_of(test):
    for expectation in test.get("promql_expr_test", []):
        yield expectation["exp_samples"]
    for expectation in test.get("alert_rule_test", []):
        yield expectation["exp_alerts"]


@pytest.fixture(scope="session")
def tests_by_alert():
    """{alert: {kind: [test]}}, and the kind `misaligned` for those evaluated between the samples."""
    found = {}
    for path in FILES:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        evaluation = seconds(document["evaluation_interval"])
        for test in document["tests"]:
            alert, kind = re.match(r"(\w+) (\w+): .", test["name"]).groups()
            kinds = found.setdefault(alert, {})
            kinds.setdefault(kind, []).append(test)
            interval = seconds(test["interval"])
            if evaluation % interval and interval % evaluation:
                kinds.setdefault("misaligned", []).append(test)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_promtool_agrees(path):
    run_promtool(path)


def test_loops_limits_and_spend_can_be_evaluated_more_often_than_the_rest(home, rules_with):
    def intervals_in(path):
        groups = yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        return {group["name"]: group.get("interval") for group in groups}

    often = dict.fromkeys(("turnwatch-loops", "turnwatch-limits", "turnwatch-spend"), "15s")
    shipped = intervals_in(home / RULES_FILE)
    assert not {shipped[name] for name in often} - {None}
    assert intervals_in(rules_with({"evaluationInterval": "15s"})) == {**shipped, **often}


def test_every_alert_is_tested_each_way_and_misaligned(alerts, tests_by_alert):
    names = {rule["alert"] for rule in alerts}
    lacking = {
        name: missing for name in names if (missing := {*KINDS, "misaligned"} - tests_by_alert.get(name, {}).keys())
    }
    assert lacking == {}
    assert tests_by_alert.keys() == names


def test_positive_tests_expect_their_alert_and_negative_ones_expect_none(tests_by_alert):
    for alert, kinds in tests_by_alert.items():
        for test in kinds["positive"]:
            assert any(alert in str(expected) for expected in expectations_of(test)), test["name"]
        for test in kinds["negative"]:
            assert not any(alert in str(expected) for expected in expectations_of(test)), test["name"]


def test_every_severity_of_every_alert_is_seen_to_fire(alerts, tests_by_alert):
    for rule in alerts:
        severity = rule["labels"]["severity"]
        expected = [str(e) for test in tests_by_alert[rule["alert"]]["positive"] for e in expectations_of(test)]
        assert any(severity in text for text in expected), f"{rule['alert']} {severity}"


def test_alerts_are_held_and_never_pending_where_money_burns(alerts):
    for rule in alerts:
        assert rule["keep_firing_for"]
        if rule["labels"]["severity"] == "critical":
            assert "for" not in rule, rule["alert"]


def test_replicas_are_never_summed_by_the_rules_of_one_turn(alerts):
    for rule in alerts:
        for gauge in re.findall(r"agent_(?:turn|conversation)_\w+_max", rule["expr"]):
            assert not re.search(rf"sum[^)]*\({gauge}", rule["expr"]), rule["alert"]

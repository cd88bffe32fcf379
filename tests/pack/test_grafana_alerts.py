"""The alerts for Grafana's own alerting: the same as Prometheus', in the form that file provisioning takes.

Never loaded by a Grafana. The form is the one that its documentation and its published schema give.
"""

import re

import pytest
import yaml

from turnwatch.pack.render import GRAFANA_ALERTS_FILE, RULES_FILE, pack_files

GROUP_KEYS = {"orgId", "name", "folder", "interval", "rules"}
RULE_KEYS = {
    "uid", "title", "condition", "data", "noDataState", "execErrState", "for", "keepFiringFor", "labels",
    "annotations", "isPaused",
}  # fmt: skip
QUERY_KEYS = {"refId", "datasourceUid", "relativeTimeRange", "model"}


def groups_of(config):
    return yaml.safe_load(pack_files(config)[GRAFANA_ALERTS_FILE])["groups"]


def rules_of(config):
    return [rule for group in groups_of(config) for rule in group["rules"]]


@pytest.fixture(scope="module")
def groups():
    return groups_of(None)


@pytest.fixture(scope="module")
def rules(groups):
    return [rule for group in groups for rule in group["rules"]]


def test_only_what_grafana_knows_is_written(groups, rules):
    for group in groups:
        assert group.keys() == GROUP_KEYS
    for rule in rules:
        assert rule.keys() == RULE_KEYS
        assert rule["noDataState"] in {"OK", "Alerting", "NoData", "KeepLast"}
        assert rule["execErrState"] in {"OK", "Alerting", "Error", "KeepLast"}
        for query in rule["data"]:
            assert query.keys() == QUERY_KEYS
            assert query["model"]["refId"] == query["refId"]


def test_uids_are_unique_and_titles_within_a_folder(groups, rules):
    uids = [rule["uid"] for rule in rules]
    assert len(set(uids)) == len(uids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", uid) for uid in uids)
    titles = [(group["folder"], rule["title"]) for group in groups for rule in group["rules"]]
    assert len(set(titles)) == len(titles)


def test_they_are_the_alerts_of_prometheus(home, rules):
    document = yaml.safe_load((home / RULES_FILE).read_text(encoding="utf-8"))
    expected = {
        (rule["alert"], rule["labels"]["severity"]): (rule["expr"], rule.get("for", "0s"), rule["keep_firing_for"])
        for group in document["groups"]
        for rule in group["rules"]
    }
    found = {
        (rule["title"], rule["labels"]["severity"]): (
            rule["data"][0]["model"]["expr"],
            rule["for"],
            rule["keepFiringFor"],
        )
        for rule in rules
    }
    assert found == expected


def test_an_answer_fires_and_none_does_not(rules):
    for rule in rules:
        query, threshold = rule["data"]
        assert query["model"]["instant"]
        assert (rule["condition"], threshold["refId"], threshold["model"]["expression"]) == ("B", "B", query["refId"])
        (condition,) = threshold["model"]["conditions"]
        assert condition["evaluator"] == {"type": "gt", "params": [-1]}, "a target that is down answers 0"
        assert rule["noDataState"] == "OK"


def test_one_alert_says_that_the_data_source_does_not_answer(rules):
    assert {rule["title"] for rule in rules if rule["execErrState"] == "Error"} == {"AgentMetricsAbsent"}


def test_texts_ask_for_values_the_way_grafana_names_them(rules):
    for rule in rules:
        for text in rule["annotations"].values():
            assert not re.search(r"\$value\b", text)
            assert "| query" not in text
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url", "dashboard_url"}


def test_the_configuration_holds_for_them_too():
    config = {"grafanaDatasourceUid": "mimir", "enabled": {"AgentIterationsHigh": False}, "window": "10m"}
    for rule in rules_of(config):
        assert rule["title"] != "AgentIterationsHigh"
        assert rule["data"][0]["datasourceUid"] == "mimir"
        assert rule["data"][0]["model"]["datasource"]["uid"] == "mimir"
        assert "[5m]" not in rule["data"][0]["model"]["expr"]


def test_they_do_not_count_on_recording_rules():
    for rule in rules_of({"recordingRules": True}):
        assert ":" not in re.sub(r'"[^"]*"', "", rule["data"][0]["model"]["expr"])

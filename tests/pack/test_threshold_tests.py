"""The promtool tests that come with a rendered pack: its own thresholds, just below and just above."""

import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from turnwatch.cli.pack import pack_app
from turnwatch.pack.promtool_tests import failing_tests
from turnwatch.pack.render import RULES_FILE, THRESHOLD_TESTS_FILE, default_config, render
from turnwatch.pack.threshold_tests import labels_that_match, threshold_tests

MULTIPLES = {"AgentSpendGrowth", "AgentToolCallsPerTurnSpike", "AgentTurnLatencyHigh"}
OWN_NUMBERS = {
    "selector": 'cluster=~"eu-.+|us", namespace="agents", team!="b"',
    "aggregationLabels": ["cluster"],
    "window": "10m",
    "thresholds": {"spendUsdPerHour": 37.5, "turnSpendUsd": {"warning": 0.3}, "conversationSpendUsd": 7},
    "minimum": {"toolCalls": 300},
    "agents": {
        "coder": {"iterations": 60, "turnSpendUsd": {"warning": 10, "critical": 30}, "identicalCalls": 5},
        "a.b|c": {"turnTokens": {"critical": 3_000_000}, "toolErrorShare": 0.3},
    },
    "tools": {
        "get_job_status": {"polling": True},
        "read_file": {"identicalCalls": 4, "toolErrorShare": {"warning": 0.6, "critical": 0.9}},
    },
    "enabled": {"AgentTurnStuckOpen": False},
}


def run(*arguments):
    return CliRunner().invoke(pack_app, [str(argument) for argument in arguments])


def series_by_test(folder):
    """{name: {series: values}} of the tests of a rendered pack."""
    document = yaml.safe_load((folder / THRESHOLD_TESTS_FILE).read_text("utf-8"))
    return {test["name"]: {one["series"]: one["values"] for one in test["input_series"]} for test in document["tests"]}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    render(OWN_NUMBERS, folder)
    return folder


@pytest.fixture
def spoilt(pack, tmp_path):
    """A copy of the pack that a test may change."""
    return Path(shutil.copytree(pack, tmp_path / "pack"))


@pytest.mark.parametrize(
    ("test", "whom", "values"),
    [
        ("AgentIterationsHigh threshold: critical", 'agent="coder"', "180x4 181x4"),
        ("AgentIterationsHigh threshold: critical", 'agent="an-agent"', "100x4 101x4"),
        ("AgentTurnSpendHigh threshold: critical", 'agent="coder"', "30x4 30.01x4"),
        ("AgentTurnSpendHigh threshold: critical", 'agent="an-agent"', "1.5x4 1.51x4"),
        ("AgentTurnTokensHigh threshold: warning", 'agent="a.b|c"', "200000x4 200001x4"),
        ("AgentConversationRunaway threshold: warning, by agent_conversation_model", 'agent="coder"', "375x4 376x4"),
        ("AgentDuplicateToolCalls threshold: critical", 'agent="coder", tool="a-tool"', "5x4 6x4"),
        ("AgentDuplicateToolCalls threshold: critical", 'agent="an-agent", tool="read_file"', "4x4 5x4"),
    ],
)
def test_every_number_of_ones_own_is_tested(pack, test, whom, values):
    (series,) = (series for name, series in series_by_test(pack).items() if name.startswith(test))
    assert {given for labels, given in series.items() if whom in labels} == {values}


def test_the_rules_hold_what_the_configuration_says(pack):
    result = run("test", pack)
    assert (result.exit_code, result.output) == (0, "1 test file: nothing fails\n")


def test_a_tool_that_may_poll_goes_past_the_number_and_nothing_is_expected(pack):
    document = yaml.safe_load((pack / THRESHOLD_TESTS_FILE).read_text("utf-8"))
    (test,) = (test for test in document["tests"] if test["name"].startswith("AgentDuplicateToolCalls"))
    assert any('tool="get_job_status"' in series["series"] for series in test["input_series"])
    assert not any("get_job_status" in str(expectation) for expectation in test["promql_expr_test"])


@pytest.mark.parametrize(
    ("threshold", "instead", "alert"),
    [("> 60", "> 61", "AgentIterationsHigh"), ("> 37.5", "> 36", "AgentSpendRateHigh")],
)
def test_a_rule_that_does_not_hold_the_configuration_is_found_out(spoilt, threshold, instead, alert):
    rules = spoilt / RULES_FILE
    text = rules.read_text("utf-8")
    assert threshold in text
    rules.write_text(text.replace(threshold, instead), encoding="utf-8")
    result = run("test", spoilt)
    assert result.exit_code == 1
    assert f'alertname="{alert}"' in result.output


def test_the_shipped_pack_comes_with_all_of_its_tests(tmp_path, home):
    render(None, tmp_path)
    shipped = {path.name: path.read_bytes() for path in (home / "alert_rules" / "tests").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "alert_rules" / "tests").iterdir()} == shipped


def test_every_alert_with_a_number_of_its_own_is_tested(home, alerts):
    tested = {name.partition(" ")[0] for name in series_by_test(home)}
    with_numbers = {
        alert["alert"] for alert in alerts if "unless set for this agent" in alert["annotations"]["description"]
    }
    assert with_numbers - MULTIPLES <= tested
    assert {"AgentDuplicateToolCalls", "AgentConversationRunaway"} <= tested


def test_an_alert_that_is_off_has_no_tests(pack):
    assert not any(name.startswith("AgentTurnStuckOpen") for name in series_by_test(pack))


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("", {"job": "agents"}),
        ('job="bots"', {"job": "bots"}),
        ('job=~"a/.+|b", cluster!="x"', {"job": "a/x"}),
        (r'job=~"a\\.b"', None),
        ('job=~"[0-9]{3}"', None),
    ],
)
def test_labels_are_made_up_for_a_selector_where_that_can_be(selector, labels):
    assert labels_that_match(selector) == labels


def test_without_labels_there_are_no_tests_and_the_command_says_so(tmp_path):
    assert threshold_tests({**default_config(), "selector": 'job=~"[0-9]{3}"'}) is None
    render({"selector": 'job=~"[0-9]{3}"'}, tmp_path)
    assert "no tests in" in str(run("test", tmp_path).exception)


def test_a_folder_with_tests_of_ones_own_runs_them_beside_the_others(spoilt):
    mine = spoilt / "alert_rules" / "tests" / "mine.yaml"
    mine.write_text("rule_files: [../turnwatch.rules.yaml]\ntests: [{promql_expr_test: [{expr: '1 +'}]}]\n", "utf-8")
    assert failing_tests(spoilt).keys() == {mine}

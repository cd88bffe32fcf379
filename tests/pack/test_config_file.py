"""One settings file for exporter and pack, through the command line."""

import re

import pytest
from typer.testing import CliRunner

from turnwatch.cli.pack import pack_app
from turnwatch.errors import SettingsError
from turnwatch.pack.config_file import config_of, remarks_on
from turnwatch.pack.render import RULES_FILE, default_config

EXAMPLE = """\
detect: {max_identical_calls: 3, iteration_threshold: 10, window_seconds: 120}
agents:
  coder: {iteration_threshold: 60}
tools:
  overrides:
    get_job_status: {polling: true}
    send_email: {side_effect: true}
alerts:
  thresholds: {turnSpendUsd: 2}
  agents:
    coder: {turnSpendUsd: 10}
"""


@pytest.fixture
def settings_file(tmp_path):
    path = tmp_path / "turnwatch.yaml"
    path.write_text(EXAMPLE, encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(pack_app, [str(argument) for argument in arguments])


def test_the_file_sets_the_keys_of_the_config(settings_file):
    assert config_of(settings_file) == {
        "window": "120s",
        "thresholds": {"identicalCalls": 3, "iterations": {"warning": 10}, "turnSpendUsd": {"warning": 2}},
        "agents": {"coder": {"iterations": 60, "turnSpendUsd": 10}},
        "tools": {"get_job_status": {"polling": True}},
    }


def test_the_examples_of_the_documentation_are_accepted(home, tmp_path):
    text = (home / "docs" / "alerts.md").read_text(encoding="utf-8")
    configs = []
    for example in re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        path = tmp_path / "turnwatch.yaml"
        path.write_text(example, encoding="utf-8")
        configs.append(config_of(path))
    config, kubernetes = configs
    assert kubernetes["kubernetes"].keys() == default_config()["kubernetes"].keys()
    assert config["agents"]["coder"] == {"iterations": 60, "turnSpendUsd": {"warning": 10, "critical": 30}}
    assert config["tools"]["read_file"] == {"identicalCalls": 4, "toolErrorShare": {"warning": 0.6, "critical": 0.9}}


def test_render_writes_the_files_own_thresholds(settings_file, tmp_path):
    out = tmp_path / "out"
    result = run("render", "--config", settings_file, "--out", out)
    assert result.exit_code == 0, result.output
    rules = (out / RULES_FILE).read_text(encoding="utf-8")
    assert 'agent_turn_iterations_max{agent!~"coder"}) > 10' in rules
    assert 'agent_turn_spend_usd_max{agent=~"coder"}) > 50' in rules
    assert 'agent_turn_identical_calls_max{tool!~"get_job_status"}) > 3' in rules


def test_check_says_what_would_change_and_writes_nothing(settings_file, tmp_path):
    out = tmp_path / "out"
    assert "alerts.dashboardBaseUrl" in run("render", "--out", out).stderr
    same = run("render", "--check", "--out", out)
    assert same.exit_code == 0
    assert "up to date" in same.output
    before = (out / RULES_FILE).read_bytes()
    result = run("render", "--check", "--config", settings_file, "--out", out)
    assert result.exit_code == 1
    assert f"differs: {out / RULES_FILE}" in result.output
    assert (out / RULES_FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("line", "text", "key"),
    [
        (9, "alerts:\n  thresholds: {turnSpendEur: 2}\n", "alerts.thresholds.turnSpendEur"),
        (8, "alert:\n  window: 5m\n", "alert"),
        (10, "alerts:\n  agents:\n    coder: {turnSpend: 10}\n", "alerts.agents.coder.turnSpend"),
    ],
)
def test_a_fault_is_named_by_key_file_and_line(tmp_path, line, text, key):
    path = tmp_path / "turnwatch.yaml"
    path.write_text(EXAMPLE.partition("alerts:")[0] + text, encoding="utf-8")
    with pytest.raises(SettingsError, match=key) as error:
        config_of(path)
    assert f"{path}, line {line}:" in str(error.value)


@pytest.mark.parametrize(
    ("alerts", "fault"),
    [
        ("{aggregationLabels: [3, 'bad-label']}", "alerts.aggregationLabels: wants names of labels"),
        ("{selector: foo}", "alerts.selector: wants label matchers"),
        ("{evaluationInterval: 15}", "alerts.evaluationInterval: wants a number and a unit, such as 15s"),
        ("{window: 5}", "alerts.window: wants a number and a unit, such as 90s or 5m"),
        ("{targetDownFor: 0}", "alerts.targetDownFor: wants a number and a unit"),
        ("{dashboardBaseUrl: grafana}", "alerts.dashboardBaseUrl: wants an http:// or https:// address"),
        ("{runbookBaseUrl: ''}", "alerts.runbookBaseUrl: wants an http:// or https:// address"),
        ("{thresholds: {toolErrorShare: 2}}", "alerts.thresholds.toolErrorShare: wants a share, from 0 to 1"),
        ("{tools: {fetch: {toolErrorShare: {critical: 2}}}}", "alerts.tools.fetch.toolErrorShare: wants a share"),
        ("{watch: {unseenShare: 50}}", "alerts.watch.unseenShare: wants a share, from 0 to 1"),
        ("{agents: {coder: {spendGrowthRatio: {warning: 2}}}}", "alerts.agents.coder.spendGrowthRatio: wants a number"),
        ("{thresholds: {iterations: {warning: 5, critical: 2}}}", "alerts.thresholds.iterations.critical: is below"),
        (
            "{agents: {coder: {turnSpendUsd: {warnign: 10}}}}",
            "turnSpendUsd.warnign: unknown key; allowed are critical, warning; did you mean warning?",
        ),
        (
            "{agents: {coder: {turnSpendUsd: {warning: ten}}}}",
            "alerts.agents.coder.turnSpendUsd.warning: wants a number",
        ),
        ("{tools: {bash: {poling: true}}}", "alerts.tools.bash.poling: unknown key"),
        ("{thresholds: {turnSpendUds: 1}}", "did you mean turnSpendUsd?"),
        ("{kubernetes: {namespace: My_Team}}", "alerts.kubernetes.namespace: wants the name of a namespace"),
        ("{kubernetes: {labels: {monitored: true}}}", "alerts.kubernetes.labels.monitored: wants text, in quotes"),
        ("{kubernetes: {labels: {'a b': x}}}", "alerts.kubernetes.labels.a b: is no label of Kubernetes"),
        ("{kubernetes: {labels: release}}", "alerts.kubernetes.labels: wants a mapping"),
        ("{kubernetes: {label: {a: b}}}", "did you mean labels?"),
        ("{thresholds: {turnSpendUsd: -1}}", "alerts.thresholds.turnSpendUsd: wants a mapping or a number from 0"),
        ("{thresholds: {turnSpendUsd: .inf}}", "alerts.thresholds.turnSpendUsd: wants a mapping or a number from 0"),
    ],
)
def test_a_value_that_would_make_bad_rules_is_refused_with_its_key(tmp_path, alerts, fault):
    path = tmp_path / "turnwatch.yaml"
    path.write_text(f"alerts: {alerts}\n", encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        config_of(path)
    assert fault in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("selector", ["", 'job="agents"', 'job=~"a.+", cluster!="x"'])
def test_selectors_that_prometheus_takes_are_taken(tmp_path, selector):
    path = tmp_path / "turnwatch.yaml"
    path.write_text(f"alerts:\n  selector: '{selector}'\n", encoding="utf-8")
    assert config_of(path) == {"selector": selector}


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("alerts: {thresholds: {iterations: 5}}", "alerts.thresholds.iterations: 5 moves the alert only"),
        ("alerts: {agents: {coder: {iterations: {warning: 60}}}}", "agents.coder.iteration_threshold moves both"),
        ("alerts: {tools: {fetch: {identicalCalls: 4}}}", "tools.overrides.fetch.max_identical_calls moves both"),
        ("{alerts: {thresholds: {iterations: 5}}, detect: {iteration_threshold: 5}}", ""),
        ("alerts: {thresholds: {iterations: {critical: 150}}}", ""),
    ],
)
def test_a_number_that_moves_the_alert_and_not_the_counter_is_remarked_on(tmp_path, text, remark):
    path = tmp_path / "turnwatch.yaml"
    path.write_text(text + "\n", encoding="utf-8")
    assert remark in "\n".join(remarks_on(path))
    assert bool(remarks_on(path)) == bool(remark)


def test_a_share_given_as_one_number_has_a_critical_one_that_can_be_passed(rules_with):
    text = rules_with({"thresholds": {"toolErrorShare": 0.4}, "tools": {"fetch": {"toolErrorShare": 0.7}}}).read_text()
    assert re.findall(r"agent_tool_calls_total\S*\[15m\]\)\) > (\S+)", text) == ["0.8", "0.9", "0.4", "0.7"]

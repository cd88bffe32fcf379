"""`turnwatch pack check` and `turnwatch pack test`, as a person runs them."""

import json

import pytest
from typer.testing import CliRunner

from turnwatch.cli.pack import pack_app
from turnwatch.pack.home import NoPackError
from turnwatch.pack.promtool_tests import PromtoolMissingError
from turnwatch.pack.render import RULES_FILE, render


def run(*arguments):
    return CliRunner().invoke(pack_app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path):
    render(None, tmp_path)
    return tmp_path


def test_the_shipped_pack_is_checked_when_no_folder_is_named():
    result = run("check")
    assert (result.exit_code, result.output) == (0, "28 rules, 6 dashboards: nothing wrong\n")


def test_changes_of_ones_own_are_checked(folder):
    rules = folder / RULES_FILE
    rules.write_text(rules.read_text("utf-8").replace("agent_turn_tokens_max", "agent_turn_token_max"), "utf-8")
    (folder / "dashboards" / "mine.json").write_text("{", encoding="utf-8")
    (folder / "dashboards" / "bare.json").write_text(json.dumps({"panels": [{"title": "x", "type": "text"}]}), "utf-8")
    (folder / "alert_rules" / "alertmanager.example.yaml").write_text("route: 1\n", encoding="utf-8")
    result = run("check", folder)
    assert result.exit_code == 1
    for fault in (
        f"{RULES_FILE}: AgentTurnTokensHigh: no such metric: agent_turn_token_max",
        "dashboards/mine.json: not JSON",
        "dashboards/bare.json: panel 'x' has no id or no place",
        "alertmanager.example.yaml: amtool says",
    ):
        assert fault in result.output


def test_a_rule_file_that_is_no_yaml_is_a_fault(folder):
    (folder / RULES_FILE).write_text("groups: [", encoding="utf-8")
    result = run("check", folder)
    assert result.exit_code == 1
    assert f"{RULES_FILE}: not YAML" in result.output


FORMS_WITH_RULES = {
    "kubernetes": "kubernetes/prometheusrule.yaml",
    "mimir": "mimir/turnwatch-limits.yaml",
    "grafana": "grafana/provisioning/alerting/turnwatch.yaml",
    "history": "history/turnwatch.alerts.yaml",
}


@pytest.mark.parametrize("form", FORMS_WITH_RULES)
def test_rules_for_other_systems_are_checked_too(form, tmp_path):
    assert run("render", "--out", tmp_path, "--for", form).exit_code == 0
    clean = run("check", tmp_path)
    assert clean.exit_code == 0, clean.output
    assert "for other systems: nothing wrong" in clean.stdout
    assert ("kubernetes/alertmanagerconfig.yaml" in clean.stderr) == (form == "kubernetes")
    file = tmp_path / FORMS_WITH_RULES[form]
    whole = file.read_text("utf-8")
    for spoilt, fault in (
        (whole.replace("(agent_turn_iterations_max)", "(agent_turn_iterations_max"), "not PromQL"),
        (whole.replace("agent_turn_iterations_max", "agent_turn_iteration_max"), "no such metric"),
        ("groups: [", "not YAML"),
        ("groups: 1", "not the shape that `pack render` writes"),
    ):
        assert spoilt != whole
        file.write_text(spoilt, "utf-8")
        result = run("check", tmp_path)
        assert result.exit_code == 1
        assert f"{FORMS_WITH_RULES[form]}: " in result.stdout
        assert fault in result.stdout
        assert "/tmp" not in result.stdout.replace(str(tmp_path), "")


def test_programs_that_are_missing_are_named(monkeypatch, folder):
    monkeypatch.setenv("PATH", str(folder))
    result = run("check", folder)
    assert result.exit_code == 0
    assert "promtool not found on PATH" in result.output
    assert isinstance(run("test", folder).exception, PromtoolMissingError)


def test_dashboards_and_grafanas_alerts_are_checked_against_grafanas_schemas(tmp_path, folder):
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "dashboard.jsonschema.json").write_text(
        json.dumps({"type": "object", "required": ["snapshot"], "properties": {"title": {"type": "integer"}}}), "utf-8"
    )
    options = {"type": "object", "additionalProperties": False, "properties": {"legend": {"type": "object"}}}
    (schemas / "timeseries.jsonschema.json").write_text(json.dumps({"definitions": {"Options": options}}), "utf-8")
    rule = {"additionalProperties": False, "required": ["weight"], "properties": {"keepFiringFor": {"type": "string"}}}
    group = {"properties": {"rules": {"items": rule}}}
    (schemas / "alerting.jsonschema.json").write_text(json.dumps({"definitions": {"RuleGroup": group}}), "utf-8")
    result = run("check", folder, "--grafana-schemas", schemas)
    assert result.exit_code == 1
    assert "turnwatch-loops: rules.0.keepFiringFor: 120000000000 is not of type 'string'" in result.output
    assert "turnwatch-loops: rules.0: 'weight' is a required property" in result.output
    assert "turnwatch-turns.json: title: 'Agents / Turns' is not of type 'integer'" in result.output
    assert "there is no schema of stat panels" in result.output
    assert "Options: : Additional properties are not allowed ('tooltip' was unexpected)" in result.output
    assert "snapshot" not in result.output


def test_the_tests_of_a_folder_are_run(folder):
    tests = folder / "alert_rules" / "tests"
    for shipped in tests.iterdir():
        shipped.unlink()
    expectation = """\
rule_files: [../turnwatch.rules.yaml]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series: [{series: 'agent_turn_iterations_max{agent="a"}', values: '9'}]
    promql_expr_test: [{eval_time: 0s, expr: 'count(ALERTS{alertstate="firing"})', exp_samples: [{value: %d}]}]
"""
    (tests / "mine.yaml").write_text(expectation % 1, encoding="utf-8")
    passed = run("test", folder)
    assert (passed.exit_code, passed.stdout) == (0, "1 test file: nothing fails\n")
    (tests / "mine.yaml").write_text(expectation % 2, encoding="utf-8")
    result = run("test", folder)
    assert result.exit_code == 1
    assert "mine.yaml" in result.output


def test_a_folder_without_a_pack_is_an_error(tmp_path):
    for command in ("check", "test"):
        assert isinstance(run(command, tmp_path).exception, NoPackError)

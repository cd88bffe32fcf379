"""What a runbook tells a person to type works: queries, settings, commands."""

import re

import pytest
import typer
import yaml
from promtool import run_promtool

from turnwatch.cli import COMMANDS, app_for
from turnwatch.pack.config_file import config_of
from turnwatch.pack.home import pack_home
from turnwatch.settings import Settings

RUNBOOKS = {path.stem: path.read_text("utf-8") for path in sorted((pack_home() / "runbooks").glob("*.md"))}
TESTS = sorted((pack_home() / "alert_rules" / "tests").glob("*.yaml"))
ENDS_ON_PURPOSE = "..."


def positive_tests():
    """{alert: (document, test)}: the first test in which each alert fires."""
    found = {}
    for path in TESTS:
        document = yaml.safe_load(path.read_text("utf-8"))
        for test in document["tests"]:
            alert, kind = re.match(r"(\w+) (\w+): .", test["name"]).groups()
            if kind == "positive":
                found.setdefault(alert, (document, test))
    return found


POSITIVE = positive_tests()


def firing_at(test, alert):
    """When the test first sees the alert fire."""
    for expectation in test.get("promql_expr_test", []):
        if alert in str(expectation["exp_samples"]):
            return expectation["eval_time"]
    return next(
        expectation["eval_time"] for expectation in test["alert_rule_test"] if alert in str(expectation["exp_alerts"])
    )


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_the_first_query_shows_something_while_the_alert_fires(tmp_path, alert):
    document, test = POSITIVE[alert]
    query = re.search(r"```promql\n(.*?)```", RUNBOOKS[alert], re.DOTALL)[1]
    question = {
        "eval_time": firing_at(test, alert),
        "expr": f"count({query.strip()}) > bool 0",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }
    asked = {key: value for key, value in test.items() if not key.endswith("_test")} | {"promql_expr_test": [question]}
    path = tmp_path / "confirm.yaml"
    rules = {"rule_files": [], "evaluation_interval": document["evaluation_interval"], "tests": [asked]}
    path.write_text(yaml.safe_dump(rules), encoding="utf-8")
    run_promtool(path)


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_settings_are_settings(tmp_path, alert):
    text = RUNBOOKS[alert]
    written = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    written += [code for code in re.findall(r"`([a-z_]+: [^`]*)`", text) if ENDS_ON_PURPOSE not in code]
    for number, code in enumerate(written):
        settings = yaml.safe_load(code)
        if settings.keys() <= Settings.model_fields.keys():
            path = tmp_path / f"{number}.yaml"
            path.write_text(code, encoding="utf-8")
            config_of(path)
        else:
            # A key alone stands for itself, in the section that the sentence is about.
            assert settings.keys() <= {"polling", "side_effect"}, code


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_commands_are_commands(alert):
    for command, arguments in re.findall(r"`turnwatch (\w+)([^`]*)`", RUNBOOKS[alert]):
        assert command in COMMANDS
        group = typer.main.get_command(app_for([command])).commands[command]
        words = arguments.split()
        if words and hasattr(group, "commands"):
            group = group.commands[words[0]]
        known = {option for parameter in group.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known


def test_every_runbook_says_how_to_stop_it_or_that_nothing_burns():
    for alert, text in RUNBOOKS.items():
        stop = text.partition("## Stop it")[2].partition("\n## ")[0]
        assert re.search(r"turnwatch kill|Nothing|budgets|start it again|take it out", stop), alert


def test_where_a_conversation_is_stopped_it_is_said_how_it_goes_on():
    stopping = [text for text in RUNBOOKS.values() if "`turnwatch kill CONVERSATION_ID`." in text]
    assert len(stopping) > 5
    for goes_on in ("`turnwatch kill --undo CONVERSATION_ID`", "`turnwatch kill --undo --agent AGENT`"):
        assert all(goes_on in text for text in stopping)

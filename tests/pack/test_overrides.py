"""Thresholds of single agents and tools, switches and severities, rendered and run on Prometheus."""

import re

import pytest
import yaml
from promtool import expect, run_promtool

from turnwatch.pack.overlay import overlay_of
from turnwatch.pack.render import ALERTMANAGER_FILE, pack_files
from turnwatch.settings import Settings

WARNING = {"alertname": "AgentDuplicateToolCalls", "severity": "warning"}
CRITICAL = {"alertname": "AgentDuplicateToolCalls", "severity": "critical"}
ITERATIONS = {"alertname": "AgentIterationsHigh", "severity": "warning"}


def settings(**sections):
    return overlay_of(Settings.model_validate(sections))


def duplicates(agent, tool, calls, *, stale=1):
    """Series of an agent that made so many identical calls."""
    labels = f'agent="{agent}", tool="{tool}"'
    return {
        f"agent_turn_identical_calls_max{{{labels}}}": f"0 {calls}x40",
        f"agent_turn_stale_calls_max{{{labels}}}": f"0 {stale}x40",
        f"agent_duplicate_tool_calls_total{{{labels}}}": f"0 {max(0, calls - 2)}x40",
    }


def test_a_polling_tool_tuned_in_the_agent_does_not_page(rules_with):
    rules = rules_with(settings(tools={"overrides": {"get_job_status": {"polling": True}}}))
    series = duplicates("support", "get_job_status", 40, stale=40) | duplicates("support", "search", 3)
    expect(rules, series, [WARNING | {"agent": "support", "tool": "search"}])


def test_a_tool_may_be_called_more_often_than_others(rules_with):
    rules = rules_with(settings(tools={"overrides": {"read_file": {"max_identical_calls": 4}}}))
    labels = 'agent="support", tool="read_file"'
    calls = f"agent_turn_identical_calls_max{{{labels}}}"
    expect(rules, {calls: "0 4x40"}, [])
    expect(rules, {calls: "0 5x40"}, [WARNING | {"agent": "support", "tool": "read_file"}])


def test_a_tools_number_wins_over_its_agents(rules_with):
    rules = rules_with(
        settings(
            agents={"coder": {"max_identical_calls": 10}},
            tools={"overrides": {"read_file": {"max_identical_calls": 4}}},
        )
    )
    calls = 'agent_turn_identical_calls_max{agent="coder", tool="%s"}'
    expect(
        rules,
        {calls % "read_file": "0 5x40", calls % "bash": "0 10x40"},
        [WARNING | {"agent": "coder", "tool": "read_file"}],
    )
    expect(rules, {calls % "bash": "0 11x40"}, [WARNING | {"agent": "coder", "tool": "bash"}])


def test_a_coding_agent_has_its_own_iterations_and_the_others_keep_theirs(rules_with):
    rules = rules_with(settings(agents={"coder": {"iteration_threshold": 60}}))
    iterations = 'agent_turn_iterations_max{agent="%s"}'
    expect(
        rules,
        {
            iterations % "coder": "0 60x40",
            'agent_iteration_limit_exceeded_total{agent="coder"}': "0 1x40",
            'agent_conversation_model_calls_max{agent="coder"}': "0 300x40",
            iterations % "support": "0 9x40",
        },
        [ITERATIONS | {"agent": "support"}],
    )
    expect(rules, {iterations % "coder": "0 61x40"}, [ITERATIONS | {"agent": "coder"}])
    expect(
        rules,
        {iterations % "coder": "0 181x40"},
        [ITERATIONS | {"agent": "coder"}, ITERATIONS | {"agent": "coder", "severity": "critical"}],
    )


def test_general_thresholds_are_the_exporters(rules_with):
    rules = rules_with(settings(detect={"iteration_threshold": 20, "max_identical_calls": 5, "window_seconds": 600}))
    text = rules.read_text(encoding="utf-8")
    assert "agent_turn_iterations_max) > 20" in text
    assert "agent_turn_iterations_max) > 100" in text
    assert "agent_turn_identical_calls_max) > 5" in text
    assert "increase(agent_duplicate_tool_calls_total[600s])" in text


def test_names_are_matched_as_they_are_written(rules_with):
    tool = 'files.read (v2) "x"'
    rules = rules_with(settings(tools={"overrides": {tool: {"polling": True}}}))
    series = duplicates("support", "files-read (v2)", 3)
    expect(rules, series, [WARNING | {"agent": "support", "tool": "files-read (v2)"}])


@pytest.mark.parametrize("severity", ["critical", "info", "warning"])
def test_unknown_results_have_the_severity_they_are_given(rules_with, severity):
    rules = rules_with({"unknownResultSeverity": severity})
    unknown = duplicates("support", "search", 3, stale=0)
    expect(rules, unknown, [WARNING | {"agent": "support", "tool": "search", "severity": severity}])
    changed = unknown | {'agent_repeat_results_total{agent="support", tool="search", result="changed"}': "0 2x40"}
    # A scrape after increase() has forgotten the results; the gauge still knows of the calls.
    expect(rules, changed, [WARNING | {"agent": "support", "tool": "search"}], at="5m15s")
    stale = duplicates("support", "search", 3, stale=3)
    expect(rules, stale, [CRITICAL | {"agent": "support", "tool": "search"}])


def test_an_alert_can_be_switched_off(rules_with):
    rules = rules_with({"enabled": {"AgentIterationsHigh": False}})
    assert "AgentIterationsHigh" not in rules.read_text(encoding="utf-8")
    expect(rules, {'agent_turn_iterations_max{agent="support"}': "9x40"}, [])


def test_always_on_agents_are_missed_when_there_is_no_series_at_all(rules_with):
    expect(rules_with({"alwaysOn": True}), {}, [{"alertname": "AgentMetricsAbsent", "severity": "warning"}], at="3m")
    expect(rules_with({}), {}, [], at="3m")


def test_only_selected_series_are_watched(rules_with):
    rules = rules_with({"selector": 'team="a"'})
    iterations = 'agent_turn_iterations_max{team="%s", agent="support"}'
    expect(rules, {iterations % "b": "9x40"}, [])
    expect(rules, {iterations % "a": "9x40"}, [ITERATIONS | {"agent": "support"}])


def test_other_aggregation_labels_stay_on_the_alert(rules_with):
    rules = rules_with({"aggregationLabels": ["team"]})
    series = 'agent_turn_iterations_max{team="a", job="bots", agent="support"}'
    expect(rules, {series: "9x40"}, [ITERATIONS | {"agent": "support", "team": "a"}])


def test_a_page_keeps_quiet_only_what_the_same_aggregation_labels_are_on():
    routing = yaml.safe_load(pack_files({"aggregationLabels": ["team", "job"]})[ALERTMANAGER_FILE])
    for rule in routing["inhibit_rules"]:
        assert {"team", "job", "agent"} <= set(rule["equal"])
    assert [route["group_by"] for route in routing["route"]["routes"]] == [["team", "agent"]]


def test_what_is_said_names_no_job_where_alerts_have_none(rules_with):
    rules = rules_with({"aggregationLabels": ["team"]})
    degraded = [
        rule
        for group in yaml.safe_load(rules.read_text("utf-8"))["groups"]
        for rule in group["rules"]
        if rule.get("alert") == "AgentWatchDegraded"
    ]
    assert degraded
    assert all("{{ with $labels.job }} in job" in rule["annotations"]["description"] for rule in degraded)
    assert all("var-job" not in rule["annotations"]["dashboard_url"] for rule in degraded)


@pytest.mark.parametrize(
    ("series", "labels", "said"),
    [
        ({"agent_turns_total": "1x40"}, {}, "There are no agent metrics at all, so"),
        (
            {
                'up{job="bots", instance="a:1"}': "1x4 0x40",
                'turnwatch_build_info{job="bots", instance="a:1"}': "1x4 stale",
                'turnwatch_build_info{job="bots", instance="b:1"}': "1x44",
            },
            {"job": "bots", "instance": "a:1"},
            "Target a:1 of job bots is down for Prometheus, so",
        ),
    ],
)
def test_agents_that_are_always_on_are_missed_in_words_that_fit(rules_with, series, labels, said):
    rules = rules_with({"alwaysOn": True, "dashboardBaseUrl": "https://d", "runbookBaseUrl": "https://r"})
    alert = {
        "exp_labels": {"severity": "warning", **labels},
        "exp_annotations": {
            "summary": "Agents are running unwatched: their metrics are gone.",
            "description": f"{said} a loop in its agents would not be seen.",
            "runbook_url": "https://r/AgentMetricsAbsent.md",
            "dashboard_url": f"https://d/turnwatch-self?var-job={labels.get('job', '')}",
        },
    }
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": "5m", "alertname": "AgentMetricsAbsent", "exp_alerts": [alert]}],
    }
    document = {"rule_files": [str(rules)], "evaluation_interval": "15s", "tests": [test]}
    path = rules.parent / "absent.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    run_promtool(path)


def test_the_dollars_so_far_are_those_of_this_jobs_agent(rules_with):
    rules = rules_with({"selector": 'team="a"'})
    series = 'agent_turn_spend_usd_max{team="a", job="%s", agent="support"}'
    asked = re.search(r"with printf `(.+?)` (.+?) \| query", rules.read_text(encoding="utf-8"))
    names = [name.removeprefix("$labels.") for name in asked[2].split()]
    assert names == ["cluster", "namespace", "job", "agent"]
    owner = {"job": "bots", "agent": "support"}
    expr = asked[1]
    for name in names:
        expr = expr.replace("%q", f'"{owner.get(name, "")}"', 1)
    test = {
        "interval": "15s",
        "input_series": [{"series": series % job, "values": f"{usd}x40"} for job, usd in (("bots", 2), ("others", 9))],
        "promql_expr_test": [{"eval_time": "5m", "expr": expr, "exp_samples": [{"labels": "{}", "value": 2}]}],
    }
    path = rules.parent / "dollars.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}), encoding="utf-8")
    run_promtool(path)

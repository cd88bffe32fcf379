"""Thresholds of single agents and tools, switches and severities, rendered and run on Prometheus."""

import pytest
from promtool import expect

from turnwatch.pack.overlay import overlay_of
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

"""The pack passes its own checks, and the checks see what is wrong."""

import json

import pytest
import yaml

from turnwatch.pack.check import UNCHARTED, pack_faults, unused_metrics
from turnwatch.pack.check_dashboards import dashboard_faults
from turnwatch.pack.check_rules import rule_faults
from turnwatch.pack.check_runbooks import runbook_faults
from turnwatch.pack.render import RULES_FILE


@pytest.fixture
def dashboard(home):
    return json.loads((home / "dashboards" / "turnwatch-overview.json").read_text(encoding="utf-8"))


@pytest.fixture
def rules(home):
    return yaml.safe_load((home / RULES_FILE).read_text(encoding="utf-8"))


def test_the_committed_pack_has_no_faults(home):
    assert pack_faults(home) == []


def test_every_metric_is_used_or_left_out_on_purpose(home):
    assert unused_metrics(home) == UNCHARTED


def first_panel(dashboard):
    return next(panel for panel in dashboard["panels"] if panel["type"] != "row")


def variable(dashboard, name):
    return next(each for each in dashboard["templating"]["list"] if each["name"] == name)


def query(expr):
    return lambda dashboard: first_panel(dashboard)["targets"][0].update(expr=expr)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda d: d.update(editable=True), "editable"),
        (lambda d: d.update(uid="My Dashboard!"), "uid"),
        (lambda d: d.pop("refresh"), "refresh is missing"),
        (lambda d: d["templating"]["list"].pop(0), "no variable datasource"),
        (lambda d: variable(d, "job").update(allValue=".*"), "variable job: not multi with allValue .+"),
        (lambda d: variable(d, "cluster").update(allValue=".+"), "variable cluster: not multi with allValue .*"),
        (lambda d: first_panel(d).pop("description"), "description is missing"),
        (lambda d: first_panel(d)["fieldConfig"]["defaults"].pop("unit"), "unit is missing"),
        (lambda d: first_panel(d)["gridPos"].update(x=22), "goes past column 24"),
        (lambda d: first_panel(d)["gridPos"].update(x=4), "lies over"),
        (lambda d: d["panels"][2].update(id=1), "stands twice"),
        (query("sum(agent_open_turn)"), "no such metric: agent_open_turn"),
        (query("sum(agent_open_turns"), "not PromQL"),
        (query('sum(agent_open_turns{job=~"$job"})'), "not filtered by $agent"),
        (query('sum(agent_open_turns{job=~"$job", agent=~"$agent"})'), "not filtered by $cluster"),
        (query('sum(agent_open_turns{job=~"$job", agent=~"$agent", tool="x"})'), "has no label tool"),
        (query('sum by (tool) (agent_open_turns{job=~"$job", agent=~"$agent"})'), "grouped by tool"),
        (query('rate(agent_turns_total{job=~"$job", agent=~"$agent"}[5m])'), "use $__rate_interval"),
    ],
)
def test_a_faulty_dashboard_is_found_out(dashboard, spoil, fault):
    assert dashboard_faults(dashboard) == []
    spoil(dashboard)
    assert any(fault in found for found in dashboard_faults(dashboard))


def first_alert(rules):
    return rules["groups"][0]["rules"][0]


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda r: first_alert(r).update(alert="agent_metrics_absent"), "CamelCase"),
        (lambda r: first_alert(r).update(alert="Agent" + "X" * 40), "longer than 40"),
        (lambda r: first_alert(r)["labels"].update(severity="page"), "severity"),
        (lambda r: first_alert(r)["annotations"].pop("runbook_url"), "runbook_url is missing"),
        (lambda r: first_alert(r)["annotations"].update(summary="No stop"), "full stop"),
        (lambda r: first_alert(r)["annotations"].update(summary="{{ $labels.agent }}."), "templated"),
        (lambda r: first_alert(r)["annotations"].update(description="Something."), "says nothing"),
        (lambda r: first_alert(r).update(expr="agent_iterations > 1"), None),
        (lambda r: first_alert(r).update(expr="agent_loops_total > 1"), "no such metric"),
        (lambda r: first_alert(r).update(expr="agent:none:rate5m > 1"), "no such metric"),
        (lambda r: first_alert(r).update(expr='agent_iterations_bucket{le="8"} > 1'), "literal le"),
        (lambda r: r["groups"].append({"rules": [{"record": "agent_spend", "expr": "vector(1)"}]}), "level:metric"),
        (lambda r: r["groups"][0].update(rules=[first_alert(r)] * 21), "more than 20"),
    ],
)
def test_a_faulty_rule_is_found_out(rules, spoil, fault):
    assert rule_faults(rules) == []
    spoil(rules)
    found = rule_faults(rules)
    assert found == [] if fault is None else any(fault in line for line in found)


def test_a_faulty_runbook_is_found_out(home):
    name = "AgentIterationsHigh"
    text = (home / "runbooks" / f"{name}.md").read_text(encoding="utf-8")
    assert runbook_faults({name: text}, {name}) == []
    assert runbook_faults({}, {name}) == [f"{name}: there is no runbook"]
    assert runbook_faults({name: text}, set()) == [f"{name}: a runbook without an alert"]
    assert "title" in runbook_faults({name: text.replace("# Agent", "# The Agent", 1)}, {name})[0]
    assert "headings" in runbook_faults({name: text.replace("## Stop it", "## Fix")}, {name})[0]
    assert "2 queries" in runbook_faults({name: text.replace("promql", "text", 1)}, {name})[0]
    assert "no such metric" in runbook_faults({name: text.replace("_iterations_max", "_iteration_max")}, {name})[0]


def test_a_link_to_a_dashboard_that_is_not_there_is_found_out(home, tmp_path):
    (tmp_path / "alert_rules").mkdir()
    (tmp_path / RULES_FILE).write_text((home / RULES_FILE).read_text(encoding="utf-8"), encoding="utf-8")
    assert any("there is no dashboard turnwatch-turns" in fault for fault in pack_faults(tmp_path))

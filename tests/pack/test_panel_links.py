"""From a panel to the runbook of the alert that goes by what it shows."""

import json
import re

import pytest

from turnwatch.pack.check_dashboards import panels_of
from turnwatch.pack.queries import metrics_of
from turnwatch.pack.render import pack_files

# What alerts divide by, or take as a sign that agents are alive: panels about it are about something else.
NOT_GONE_BY = {"ALERTS", "agent_model_calls_total", "agent_tool_calls_total", "agent_turns_total"}
SPEND = {"AgentSpendGrowth", "AgentSpendRateHigh"}


def shown(files):
    """Each panel, with its dashboard's uid."""
    for name, content in files.items():
        if name.startswith("dashboards/"):
            dashboard = json.loads(content)
            yield from ((dashboard["uid"], panel) for panel in panels_of(dashboard))


@pytest.fixture(scope="module")
def panels(home):
    files = {f"dashboards/{path.name}": path.read_text("utf-8") for path in (home / "dashboards").glob("*.json")}
    return list(shown(files))


def runbooks_of(panel):
    return {link["url"].rsplit("/", 1)[1].removesuffix(".md") for link in panel["links"]}


def test_every_alert_has_a_panel_on_the_dashboard_that_it_leads_to(alerts, panels):
    for alert in alerts:
        uid = alert["annotations"]["dashboard_url"].rsplit("/", 1)[1].partition("?")[0]
        assert any(alert["alert"] in runbooks_of(panel) for on, panel in panels if on == uid), alert["alert"]


def test_links_lead_to_the_runbooks_of_alerts(alerts, panels):
    addresses = {alert["annotations"]["runbook_url"] for alert in alerts}
    links = [link for _, panel in panels for link in panel["links"]]
    assert {link["url"] for link in links} == addresses
    assert all(link["title"].endswith(link["url"].rsplit("/", 1)[1].removesuffix(".md")) for link in links)


def test_a_panel_leads_to_an_alert_that_goes_by_what_it_shows(alerts, panels):
    read = {}
    for alert in alerts:
        read.setdefault(alert["alert"], set()).update(metrics_of(alert["expr"]) - NOT_GONE_BY)
    for uid, panel in panels:
        metrics = set().union(*(metrics_of(target["expr"]) for target in panel["targets"]))
        about = {alert for alert, names in read.items() if names & metrics}
        # Two alerts go by the same dollars: how fast they are spent, and how much faster than a week ago.
        wanted = about - SPEND | ({"one about spend"} if about & SPEND else set())
        found = runbooks_of(panel)
        leads_to = found - SPEND | ({"one about spend"} if found & SPEND else set())
        assert wanted <= leads_to, f"{uid}: {panel['title']}"


def test_the_table_of_links_names_panels_that_there_are(panels, home):
    source = (home / "dashboards/lib/runbooks.libsonnet").read_text("utf-8").partition("function(")[0]
    named = set(re.findall(r"'([^']+)'", source))
    assert named == {panel["title"] for _, panel in panels if panel["links"]}


def test_headings_have_no_links_which_grafanas_schema_does_not_allow(home):
    for path in (home / "dashboards").glob("*.json"):
        headings = [panel for panel in json.loads(path.read_text("utf-8"))["panels"] if panel["type"] == "row"]
        assert headings
        assert not any("links" in heading for heading in headings)


def test_firing_alerts_lead_to_their_own_runbooks(alerts, panels):
    (panel,) = [panel for _, panel in panels if panel["title"] == "Firing alerts"]
    (link,) = panel["fieldConfig"]["defaults"]["links"]
    addresses = {link["url"].replace("${__field.labels.alertname}", alert["alert"]) for alert in alerts}
    assert addresses == {alert["annotations"]["runbook_url"] for alert in alerts}


def test_links_follow_the_address_of_runbooks_and_leave_out_alerts_that_are_off():
    config = {"runbookBaseUrl": "https://wiki.example.com/runbooks", "enabled": {"AgentLoopDetected": False}}
    links = [link for _, panel in shown(pack_files(config)) for link in panel["links"]]
    assert links
    assert all(link["url"].startswith("https://wiki.example.com/runbooks/Agent") for link in links)
    assert not any("AgentLoopDetected" in link["url"] for link in links)

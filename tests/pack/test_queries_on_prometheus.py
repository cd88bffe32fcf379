"""Every query of rules, panels and runbooks, run by a real Prometheus over an hour of data."""

import json
import re
import time
from urllib.error import HTTPError
from urllib.parse import quote

import pytest
from hour_of_data import HOUR, NEEDS_DAYS, write_blocks

from turnwatch.demo.loopback import get_json
from turnwatch.demo.servers import running_prometheus
from turnwatch.pack.check_dashboards import filled_in, panels_of
from turnwatch.pack.home import pack_home

DASHBOARDS = [json.loads(path.read_text("utf-8")) for path in sorted((pack_home() / "dashboards").glob("*.json"))]
PANELS = [(dashboard["uid"], panel) for dashboard in DASHBOARDS for panel in panels_of(dashboard)]
TIMES = {"__rate_interval": "2m", "__interval": "1m", "__range": "45m"}
ONE_VALUE = {"job": "bots", "agent": "coder", "tool": "fetch", "model": "own-7b"}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """Answers a query at the end of the hour, or over it: `ask(expr, over_time)`."""
    folder = tmp_path_factory.mktemp("prometheus")
    start = int(time.time()) // HOUR * HOUR - 3 * HOUR
    write_blocks(folder, start)
    (folder / "prometheus.yml").write_text("{}", encoding="utf-8")
    with running_prometheus(folder, data=".") as url:

        def ask(expr, over_time=False):
            if over_time:
                path = f"query_range?query={quote(expr)}&start={start + HOUR // 4}&end={start + HOUR}&step=60"
            else:
                path = f"query?query={quote(expr)}&time={start + HOUR}"
            try:
                return get_json(f"{url}/api/v1/{path}")["data"]["result"]
            except HTTPError as error:
                raise AssertionError(f"{error.read().decode()} in {expr}") from None

        yield ask


@pytest.mark.parametrize("values", [{}, ONE_VALUE], ids=["all", "one value"])
@pytest.mark.parametrize(
    ("uid", "panel"), PANELS, ids=lambda value: value if isinstance(value, str) else value["title"]
)
def test_a_panel_shows_something_and_only_what_its_legend_names(prometheus, uid, panel, values):
    for target in panel["targets"]:
        result = prometheus(filled_in(target["expr"], {**TIMES, **values}), over_time=target["range"])
        if panel["title"] in NEEDS_DAYS:
            assert result == []
            continue
        assert result, f"nothing for {target['expr']}"
        assert len(result) <= 60
        named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        if panel["type"] != "table":
            for series in result:
                assert named == series["metric"].keys(), target["expr"]


def words_for(labels, annotations):
    """Annotations, of whose branches (if eq $labels.X "…") only the one of these labels is left.

    Without what is said of labels only where they are there (with $labels.X), and without the dollars so far: a label
    that is not there selects series without it.
    """

    def chosen(found):
        branches = re.findall(r'if eq \$labels\.(\w+) "(\w+)" }}(.*?)(?={{ else|$)', found[1])
        otherwise = re.search(r"{{ else }}(.*)$", found[1])
        fitting = [text for label, value, text in branches if labels.get(label) == value]
        return fitting[0] if fitting else otherwise[1] if otherwise else ""

    words = " ".join(text for name, text in annotations.items() if name != "turn_spend")
    words = re.sub(r"{{ with \$labels.*?{{ end }}", "", words)
    return re.sub(r"{{ (if eq .*?){{ end }}", chosen, words)


def test_every_rule_is_a_query_that_keeps_its_labels(prometheus, alerts):
    for rule in alerts:
        for series in prometheus(rule["expr"]):
            for label in re.findall(r"\$labels\.(\w+)", words_for(series["metric"], rule["annotations"])):
                assert label in series["metric"], f"{rule['alert']} has no label {label}"


def test_every_query_of_a_runbook_is_answered(prometheus, home):
    for path in (home / "runbooks").glob("*.md"):
        for query in re.findall(r"```promql\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            prometheus(query.strip())


def test_every_value_of_a_variable_is_found(prometheus):
    for dashboard in DASHBOARDS:
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
                found = {row["metric"].get(label) for row in prometheus(filled_in(series, TIMES))}
                assert ONE_VALUE.get(label) in found, f"{dashboard['uid']} {label}"

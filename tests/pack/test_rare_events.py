"""Panels count the first event of a series, which increase() alone never sees."""

import json

import pytest
import yaml
from promtool import run_promtool

from turnwatch.pack.check_dashboards import filled_in
from turnwatch.pack.home import pack_home

STUCK = 'agent_loops_detected_total{job="bots", agent="a", tool="search", kind="cycle", severity="stuck"}'
AT = "3h"
HISTORIES = {
    "a first event of a series born at 0": ("_x330 0x5 1x44", 1),
    "a first event": ("_x340 1x40", 1),
    "a third event of an old series": ("2x330 3x50", 1),
    "nothing new": ("7x380", 0),
    "nothing new after twenty minutes away": ("7x300 _x40 7x40", 0),
}
"""Samples each half minute, and how many events the last half an hour had."""


def expr_of(dashboard, title):
    document = json.loads((pack_home() / "dashboards" / f"{dashboard}.json").read_text("utf-8"))
    (panel,) = (panel for panel in document["panels"] if panel["title"] == title)
    return filled_in(panel["targets"][0]["expr"], {"__range": "30m", "__rate_interval": "30m"})


@pytest.mark.parametrize("title", ["Stuck verdicts", "Verdicts"])
@pytest.mark.parametrize("history", HISTORIES)
def test_events_are_counted_once(tmp_path, title, history):
    values, events = HISTORIES[history]
    expr = f"round(sum({expr_of('turnwatch-loops', title)})) or vector(0)"
    test = {
        "interval": "30s",
        "input_series": [{"series": STUCK, "values": values}],
        "promql_expr_test": [{"eval_time": AT, "expr": expr, "exp_samples": [{"labels": "{}", "value": events}]}],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}), encoding="utf-8")
    run_promtool(path)

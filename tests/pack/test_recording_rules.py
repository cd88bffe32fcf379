"""The pack of a large fleet: what looks far back is worked out by recording rules."""

import json
import re

import pytest
import yaml
from promtool import run_promtool

from turnwatch.pack.check import pack_faults
from turnwatch.pack.home import pack_home
from turnwatch.pack.render import RULES_FILE, pack_files, write

WEEKS = ("spend.yaml", "misaligned_weeks.yaml")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    write(pack_files({"recordingRules": True}), folder)
    return folder


@pytest.fixture(scope="module")
def records(pack):
    groups = yaml.safe_load((pack / RULES_FILE).read_text(encoding="utf-8"))["groups"]
    return {rule["record"]: rule["expr"] for group in groups for rule in group["rules"] if "record" in rule}


def test_without_the_switch_there_are_none(home):
    assert "record:" not in (home / RULES_FILE).read_text(encoding="utf-8")


def test_the_pack_is_without_fault(pack):
    assert pack_faults(pack) == []


def test_each_is_named_for_its_labels_and_read_by_something(pack, records):
    readers = [(pack / RULES_FILE).read_text(encoding="utf-8")]
    readers += [path.read_text("utf-8") for path in (pack / "dashboards").glob("*.json")]
    for name, expr in records.items():
        level = name.partition(":")[0].split("_")
        (labels,) = set(re.findall(r"sum by \(([^)]*)\)", expr))
        kept = [label for label in labels.split(", ") if label not in {"cluster", "namespace", "job"}]
        assert kept == (level if "histogram_quantile" not in expr else [*level, "le"])
        assert any(re.search(rf"(?<!record: ){re.escape(name)}\b", text) for text in readers), name


@pytest.mark.parametrize("name", WEEKS)
def test_growth_is_found_as_without_them(pack, tmp_path, name):
    text = (pack_home() / "alert_rules" / "tests" / name).read_text(encoding="utf-8")
    tests = tmp_path / name
    tests.write_text(text.replace("../turnwatch.rules.yaml", str(pack / RULES_FILE)), encoding="utf-8")
    run_promtool(tests)


def test_what_they_write_is_what_the_panels_would_ask(pack, tmp_path):
    buckets = {"0.5": 60, "1.0": 120, "+Inf": 120}
    series = [
        {
            "series": "agent_tool_call_duration_seconds_bucket"
            f'{{job="bots", instance="{pod}", agent="a", tool="{tool}", le="{bound}"}}',
            "values": f"0+{rate}x20",
        }
        for pod in "pq"
        for tool in ("search", "fetch")
        for bound, rate in buckets.items()
    ]
    labels = 'job="bots", agent="a"'
    expected = {
        "agent_tool:agent_tool_call_duration_seconds:p95_rate5m": [
            (f'{labels}, tool="{tool}"', 0.95) for tool in ("search", "fetch")
        ],
        "agent_le:agent_tool_call_duration_seconds_bucket:rate5m": [
            (f'{labels}, le="{bound}"', 4 * rate / 60) for bound, rate in buckets.items()
        ],
    }
    test = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [
            {
                "eval_time": "10m",
                "expr": name,
                "exp_samples": [{"labels": f"{name}{{{labels}}}", "value": value} for labels, value in samples],
            }
            for name, samples in expected.items()
        ],
    }
    path = tmp_path / "recorded.yaml"
    document = {"rule_files": [str(pack / RULES_FILE)], "evaluation_interval": "1m", "tests": [test]}
    path.write_text(json.dumps(document), encoding="utf-8")
    run_promtool(path)


def test_panels_filter_them_by_what_they_have(pack):
    tools = json.loads((pack / "dashboards" / "turnwatch-tools.json").read_text("utf-8"))
    exprs = [target["expr"] for panel in tools["panels"] for target in panel.get("targets", [])]
    (latency,) = (expr for expr in exprs if "p95_rate5m" in expr)
    assert all(f'{label}=~"${label}"' in latency for label in ("job", "agent", "tool"))
    kept = pack_files({"recordingRules": True, "aggregationLabels": ["cluster"]})["dashboards/turnwatch-tools.json"]
    (latency,) = (expr for expr in re.findall(r'"expr": "(.*)"', kept) if "p95_rate5m" in expr)
    assert "job" not in latency

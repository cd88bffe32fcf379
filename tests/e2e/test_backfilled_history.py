"""Recorded runs as blocks of a real Prometheus, and the pack's own rules over them at the time of the runs."""

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
import yaml
from typer.testing import CliRunner

from turnwatch.cli.backfill import backfill_app
from turnwatch.demo.loopback import get_json
from turnwatch.demo.servers import running_prometheus
from turnwatch.pack.check_dashboards import filled_in, panels_of
from turnwatch.pack.home import pack_home
from turnwatch.pack.past_alerts import past_alerts
from turnwatch.pack.render import RULES_FILE, pack_files

# Half a minute of reading and writing samples, without the tracing of coverage.
pytestmark = pytest.mark.heavy

MONDAY = datetime(2026, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEKS = 5
GROWING_USD = (127, 891, 6_240, 18_400, 18_400)
"""The weeks of an agent whose spend ran away, and one in which it grew no more."""
STEADY_USD = (50, 50, 50, 50, 50, 5, 5)
"""Monday to Sunday."""
SPIKE = MONDAY + 30 * DAY
LOOP = MONDAY + 36 * DAY
LOOP_ENDS = LOOP + timedelta(minutes=2)
DOWN = LOOP + 2 * HOUR
GONE = LOOP + 3 * DAY


def turn(name, agent, calls):
    return {"trajectory_id": name, "agent": agent, "model": "m", "exit": "done", "calls": calls}


def call(at, usd=None, **fields):
    return {
        "tool": "search",
        "args": {"at": at.isoformat()},
        "result": at.isoformat(),
        "ts": at.timestamp(),
        "cost_usd": usd,
        **fields,
    }


def weeks():
    for hours in range(0, WEEKS * 7 * 24, 6):
        at = MONDAY + hours * HOUR
        week, day = divmod(hours // 24, 7)
        yield turn(f"growing-{hours}", "growing", [call(at, GROWING_USD[week] / 28)])
        yield turn(f"steady-{hours}", "steady", [call(at, STEADY_USD[day] / 4)])
    for number in range(-24, 12):
        # Hourly until the spike, then every five minutes.
        at = SPIKE + (number * HOUR if number < 0 else number * timedelta(minutes=5))
        calls = 3 if number < 0 else 28
        yield turn(f"spiky-{number}", "spiky", [call(at + step * timedelta(seconds=1)) for step in range(calls)])


def loop():
    """Two turns that run at the same time, in files one after the other."""
    step = timedelta(seconds=20)
    same = {"args": {"id": 7}, "result": "pending", "tool": "get_order"}
    yield turn("loops", "looping", [call(LOOP + n * step, 0.01, **same) for n in range(7)])
    yield turn("works", "working", [call(LOOP + n * step, 0.01) for n in range(7)])


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def create_blocks(text, folder):
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=720h", str(text), str(folder)],
        check=True, capture_output=True, timeout=240,
    )  # fmt: skip


def backfilled(folder, name, records, *options):
    source = folder / f"{name}.jsonl"
    source.write_text(lines(records), encoding="utf-8")
    text = folder / f"{name}.om"
    result = CliRunner().invoke(backfill_app, [str(source), "-o", str(text), *options])
    assert result.exit_code == 0, result.output
    return text


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """The URL of a Prometheus that holds five weeks at a sample every half hour, and a loop at one every 15 s."""
    folder = tmp_path_factory.mktemp("history")
    blocks = folder / "blocks"
    create_blocks(backfilled(folder, "weeks", weeks(), "--step", "30m", "--label", "job=weeks"), blocks)
    create_blocks(backfilled(folder, "loop", loop(), "--label", "job=loop"), blocks)
    down = folder / "down.om"
    # What Prometheus notes of a target that it knew and cannot reach.
    at = int(DOWN.timestamp())
    samples = (f'up{{job="loop",instance="history"}} 0 {at + 15 * step}\n' for step in range(40))
    down.write_text("# TYPE up gauge\n" + "".join(samples) + "# EOF\n", encoding="utf-8")
    create_blocks(down, blocks)
    (folder / "prometheus.yml").write_text("{}", encoding="utf-8")
    with running_prometheus(folder, "--storage.tsdb.retention.time=10y", data=blocks) as url:
        yield url, folder


def at_one_time(prometheus, expr, at):
    return get_json(f"{prometheus[0]}/api/v1/query?query={quote(expr)}&time={at.timestamp()}")["data"]["result"]


def over_time(prometheus, expr, start, end, step):
    """When the expression gave something, by agent."""
    path = (
        f"query_range?query={quote(expr)}&start={start.timestamp()}&end={end.timestamp()}&step={step.total_seconds()}"
    )
    found = {}
    for series in get_json(f"{prometheus[0]}/api/v1/{path}")["data"]["result"]:
        times = [datetime.fromtimestamp(at, UTC) for at, _ in series["values"]]
        found.setdefault(series["metric"].get("agent", ""), []).extend(times)
    return found


@pytest.fixture(scope="module")
def rules():
    """The rules of the pack, without and with `alwaysOn`, by name and severity."""

    def rendered(config):
        groups = yaml.safe_load(pack_files(config)[RULES_FILE])["groups"]
        return {
            (rule["alert"], rule["labels"]["severity"]): rule
            for group in groups
            for rule in group["rules"]
            if "alert" in rule
        }

    return rendered({}), rendered({"alwaysOn": True})


def test_growing_spend_fires_from_the_second_week_while_it_grows_threefold_and_steady_spend_never(prometheus, rules):
    rule = rules[0]["AgentSpendGrowth", "warning"]
    fired = over_time(prometheus, rule["expr"], MONDAY, MONDAY + WEEKS * 7 * DAY, HOUR)
    assert fired.keys() == {"growing"}
    times = fired["growing"]
    # As soon as there are two days of the week before to compare with, and for longer than the rule waits.
    assert MONDAY + 9 * DAY <= times[0] <= MONDAY + 10 * DAY
    assert rule["for"] == "6h"
    assert times[:120] == [times[0] + n * HOUR for n in range(120)]
    # From the third week to the fourth it is less than threefold.
    assert MONDAY + 21 * DAY < times[-1] < MONDAY + 23 * DAY


def test_a_spike_of_tool_calls_fires_within_its_hour_and_not_before(prometheus, rules):
    rule = rules[0]["AgentToolCallsPerTurnSpike", "warning"]
    fired = over_time(prometheus, rule["expr"], MONDAY + 7 * DAY, SPIKE + 3 * HOUR, timedelta(minutes=30))
    assert fired.keys() == {"spiky"}
    assert SPIKE < fired["spiky"][0] <= SPIKE + HOUR


def test_a_target_that_went_away_is_missed_and_no_series_at_all_only_where_agents_always_run(prometheus, rules):
    usual, always = (each["AgentMetricsAbsent", "warning"]["expr"] for each in rules)
    while_running = LOOP + timedelta(minutes=1)
    assert at_one_time(prometheus, usual, while_running) == at_one_time(prometheus, always, while_running) == []
    for expr in (usual, always):
        assert "loop" in [series["metric"].get("job") for series in at_one_time(prometheus, expr, DOWN + HOUR / 12)]
    assert at_one_time(prometheus, usual, GONE) == []
    assert [series["metric"] for series in at_one_time(prometheus, always, GONE)] == [{}]


def test_identical_calls_fire_while_the_recorded_turn_runs_and_only_for_the_agent_that_makes_them(prometheus, rules):
    critical, warning = (rules[0]["AgentDuplicateToolCalls", severity]["expr"] for severity in ("critical", "warning"))
    # The third identical call is made 40 seconds after the first, and the next scrape sees it.
    assert at_one_time(prometheus, critical, LOOP + timedelta(seconds=44)) == []
    (series,) = at_one_time(prometheus, critical, LOOP + timedelta(seconds=45))
    assert series["metric"] == {"agent": "looping", "tool": "get_order", "job": "loop"}
    assert float(series["value"][1]) == 3
    assert at_one_time(prometheus, warning, LOOP_ENDS) == []
    # Five minutes after its last call it is over.
    fired = over_time(prometheus, critical, LOOP, LOOP + HOUR / 4, timedelta(seconds=15))
    assert fired.keys() == {"looping"}
    assert fired["looping"][-1] < LOOP_ENDS + timedelta(minutes=5, seconds=30)


def test_turns_of_different_places_in_a_file_run_at_the_same_time(prometheus):
    (looping, working) = at_one_time(prometheus, "agent_open_turns == 1", LOOP + timedelta(minutes=1))
    assert {looping["metric"]["agent"], working["metric"]["agent"]} == {"looping", "working"}
    assert at_one_time(prometheus, "agent_open_turns == 1", LOOP_ENDS + HOUR / 60) == []


def test_counters_rise_at_the_times_of_the_calls_and_stay(prometheus):
    def spent(at):
        (series,) = at_one_time(prometheus, 'agent_spend_usd_total{agent="looping"}', at)
        return round(float(series["value"][1]), 6)

    assert spent(LOOP + timedelta(seconds=30)) == 0.02
    assert spent(LOOP_ENDS + timedelta(seconds=15)) == spent(LOOP_ENDS + timedelta(minutes=4)) == 0.07


def test_the_dashboard_of_loops_shows_the_recorded_loop(prometheus):
    dashboard = json.loads((pack_home() / "dashboards" / "turnwatch-loops.json").read_text("utf-8"))
    shown = 0
    for panel in panels_of(dashboard):
        for target in panel["targets"]:
            expr = filled_in(target["expr"], {"__rate_interval": "1m", "__interval": "15s", "__range": "15m"})
            shown += bool(at_one_time(prometheus, expr, LOOP_ENDS))
    assert shown >= 5


def test_promtool_fills_in_the_alerts_that_would_have_fired(prometheus, tmp_path):
    url, folder = prometheus
    rules = folder / "alerts.yaml"
    rules.write_text(past_alerts(pack_files({}))["history/turnwatch.alerts.yaml"], encoding="utf-8")
    filled = tmp_path / "filled"
    subprocess.run(
        [
            "promtool", "tsdb", "create-blocks-from", "rules", f"--url={url}", f"--start={int(LOOP.timestamp())}",
            f"--end={int((LOOP + HOUR / 6).timestamp())}", "--eval-interval=15s", f"--output-dir={filled}", str(rules),
        ],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    (filled / "wal").mkdir()  # the older promtool dumps no folder without one
    said = subprocess.run(
        ["promtool", "tsdb", "dump", str(filled)], check=True, capture_output=True, text=True, timeout=60
    )
    alerts = [line for line in said.stdout.splitlines() if line.startswith('{__name__="ALERTS"')]
    assert {re.search('alertname="([^"]+)"', line)[1] for line in alerts} == {
        "AgentDuplicateToolCalls", "AgentLoopDetected", "AgentConversationRunaway",
    }  # fmt: skip
    for line in alerts:
        assert 'agent="looping"' in line
        assert 'alertstate="firing"' in line
        assert line.split()[-2] == "1"

"""``turnwatch top --once``: the table, the JSON, and the exit codes."""

import json
import socket

import pytest
from tests.ports import kept_port
from tests.top.servers import Agents, Pages
from typer.testing import CliRunner

from turnwatch.cli.top import top_app
from turnwatch.errors import SettingsError

runner = CliRunner()


@pytest.fixture(autouse=True)
def as_wide_as_it_wants(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # which test runners set


@pytest.fixture
def agents():
    with kept_port() as port:
        exporter = Agents(port)
        exporter.loop("support-bot", "search_orders", rounds=5)
        exporter.work("billing-bot", "get_invoice", questions=3)
        yield exporter
        exporter.close()


@pytest.fixture
def nobody():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def once(*arguments):
    return runner.invoke(top_app, ["--once", "--interval", "100ms", *arguments])


def test_once_prints_every_agent_with_every_column(agents):
    shown = once(agents.url)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0].startswith("turnwatch top")
    assert "1 stuck" in lines[1]
    heading = next(line for line in lines if line.startswith("STATE"))
    assert heading.split()[-1] == "#STOP"
    rows = [line.split()[:2] for line in lines if line.startswith(("STUCK", "idle"))]
    assert rows == [["STUCK", "support-bot"], ["idle", "billing-bot"]]
    stuck = next(line for line in lines if line.startswith("STUCK support-bot"))
    assert stuck.split()[-3:] == ["1", "1", "0"], "stuck, warned, stopped since the exporter began"
    assert "\x1b" not in shown.output


def test_once_says_what_the_numbers_mean(agents):
    said = " ".join(once(agents.url).output.split())
    assert "stuck is a verdict that the turn makes no progress: its alert is critical, and pages." in said
    assert "#STUCK, #WARN, #STOP: since the exporters began." in said
    assert "in the last 5 minutes" in said


def test_json_of_a_name_that_is_no_text_is_text_all_the_same():
    pages = Pages()
    labels = {"turnwatch_top": "agent_open_turns", "agent": "half a \ud83d pair"}
    answer = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": labels, "value": [0, "1"]}]}}
    pages.answer = lambda path: (200, json.dumps(answer), {})
    shown = once("--json", "--prometheus", pages.url)
    pages.close()
    assert shown.exit_code == 0, shown.output
    (agent,) = json.loads(shown.output)["agents"]
    assert agent["agent"] == "half a ? pair"


def test_json_has_rates_over_two_looks(agents):
    shown = once("--json", agents.url)
    assert shown.exit_code == 0, shown.output
    board = json.loads(shown.output)
    assert board["sources"] == [{"address": agents.url, "kind": "metrics", "up": True, "error": None}]
    assert (board["up"], board["down"], board["stuck_agents"], board["open_turns"]) == (1, 0, 1, 1)
    assert board["window_seconds"] > 0
    stuck, healthy = board["agents"]
    assert (stuck["agent"], stuck["state"], stuck["stale_calls"], stuck["worst_tool"]) == (
        "support-bot",
        "STUCK",
        5,
        "search_orders",
    )
    assert stuck["calls_per_minute"] == 0
    # All before the first look: who looks once wants to know what the exporter has counted.
    assert board["counted"] == "since the exporters began"
    assert (stuck["stuck_verdicts"], stuck["stuck_verdicts_total"], stuck["is_stale"]) == (1, 1, True)
    assert (stuck["warn_verdicts"], stuck["warn_verdicts_total"]) == (1, 1)
    assert (healthy["agent"], healthy["state"], healthy["open_turns"]) == ("billing-bot", "idle", 0)
    assert {(event["agent"], event["sort"]) for event in board["events"]} == {
        ("support-bot", "warn"),
        ("support-bot", "stuck"),
    }
    assert board["tools"][0]["tool"] == "search_orders"


def test_sort_and_filter(agents):
    by_name = json.loads(once("--json", "--sort", "agent", agents.url).output)
    assert [row["agent"] for row in by_name["agents"]] == ["billing-bot", "support-bot"]
    filtered = json.loads(once("--json", "--filter", "BILL", agents.url).output)
    assert [row["agent"] for row in filtered["agents"]] == ["billing-bot"]
    assert filtered["events"] == []


def test_thresholds_come_from_the_agents_settings(agents, tmp_path):
    config = tmp_path / "turnwatch.yaml"
    config.write_text("tools: {overrides: {search_orders: {polling: true}}}\ndetect: {iteration_threshold: 3}\n")
    board = json.loads(once("--json", "--config", str(config), agents.url).output)
    # The tool may be asked again; that the engine found the turn stuck is the exporter's own word.
    assert [tool["is_stale"] for tool in board["tools"]] == [False, False]
    assert board["agents"][0]["state"] == "STUCK"


def test_a_source_that_is_down_is_named_and_the_others_are_shown(agents, nobody):
    shown = once(agents.url, nobody)
    assert shown.exit_code == 0
    assert f"turnwatch: http://{nobody}: Connection refused" in shown.stderr
    assert "1 DOWN" in shown.stdout


def test_no_source_at_all_is_exit_code_2_and_a_line_for_each(nobody):
    pages = Pages()
    pages.answer = lambda path: (200, "go_goroutines 1\n", {})
    shown = once(nobody, f"{pages.url}/metrics")
    pages.close()
    assert shown.exit_code == 2
    assert shown.stderr.splitlines() == [
        f"turnwatch: http://{nobody}: Connection refused",
        f"turnwatch: {pages.url}/metrics: answers, but has no turnwatch metrics",
    ]
    assert shown.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["x:y:z"], "x:y:z"),
        (["ftp://host/"], "ftp://host/"),
        (["--sort", "colour", "host:1"], "colour"),
        (["--header", "nothing", "host:1"], "--header"),
        (["--prometheus", "--metrics", "host:1"], "--prometheus"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, named):
    shown = once(*arguments)
    assert isinstance(shown.exception, SettingsError)
    assert named in str(shown.exception)


@pytest.mark.parametrize("option", ["--interval", "--window", "--timeout"])
def test_what_is_no_duration_is_named(option):
    shown = once(option, "soon", "host:1")
    assert shown.exit_code == 2
    assert option in shown.stderr
    assert "wants a duration" in shown.stderr


def test_without_a_terminal_there_is_no_live_screen(agents):
    shown = runner.invoke(top_app, [agents.url])
    assert isinstance(shown.exception, SettingsError)
    assert "--once" in str(shown.exception)


def test_json_needs_once(agents):
    assert "--once" in str(runner.invoke(top_app, ["--json", agents.url]).exception)

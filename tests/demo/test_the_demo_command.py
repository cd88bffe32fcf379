"""``turnwatch demo`` from start to end, as a user runs it."""

import json
import shutil
import signal
import time
import urllib.request

import pytest

from turnwatch.pack.home import pack_home


def read_json_object(stream):
    lines = []
    for line in stream:
        lines.append(line)
        if line == "}\n":
            return json.loads("".join(lines))
    raise AssertionError(f"no JSON object in {lines}")


def wait_until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_third_identical_call_pages_within_the_promised_time(demo):
    ran = demo.start("--json")
    output, errors = ran.communicate(timeout=90)
    told = json.loads(output)
    assert ran.returncode == 0, (errors, told["timeline"])
    assert told["paged"]
    assert 0 < told["page_seconds_after_third_call"] <= 5
    assert told["webhook"]["alertname"] == "AgentDuplicateToolCalls"
    assert told["webhook"]["agent"] == "support-bot"
    assert told["webhook"]["tool"] == "search_orders"
    assert told["webhook"]["severity"] == "critical"
    assert told["webhook"]["dashboard_url"]
    runbook = told["webhook"]["runbook_url"].rsplit("/", 1)[-1]
    assert (pack_home() / "runbooks" / runbook).is_file()
    assert told["healthy_agent_alerts"] == []
    assert told["verdict"]["severity"] == "stuck"
    assert told["turn"]["duplicates"] == told["turn"]["tool_calls"] - 2
    morning = told["by_morning"]
    assert morning["usd"] == pytest.approx(morning["calls"] * morning["usd_per_call"], abs=0.01)
    assert morning["calls"] == pytest.approx(morning["hours"] * 3600 / morning["seconds_per_call"], abs=1)
    third, counted = [
        moment for moment in told["timeline"] if "call 3:" in moment["what"] or "tool_calls_total 1" in moment["what"]
    ]
    assert third["seconds_after_third_call"] == 0
    assert counted["what"] == "duplicate counted: agent_duplicate_tool_calls_total 1"
    assert demo.left_running() == []
    assert list(demo.folder.iterdir()) == []
    # Whatever takes seconds is announced before it begins.
    steps = [moment["what"] for moment in told["timeline"]]
    before = steps[: next(at for at, what in enumerate(steps) if what.startswith("call 1"))]
    assert [what for what in before if what.startswith("is ")] == [
        "is starting",
        "is starting",
        "is looking for what to scrape, which takes it up to ten seconds",
    ]


def test_kept_servers_answer_until_they_are_told_to_end(demo):
    ran = demo.start("--keep", "--json")
    told = read_json_object(ran.stdout)
    for address in told["addresses"].values():
        with urllib.request.urlopen(address, timeout=5) as answer:
            assert answer.status == 200
    ran.send_signal(signal.SIGTERM)
    _, errors = ran.communicate(timeout=30)
    assert ran.returncode == 0, errors
    assert demo.left_running() == []
    assert list(demo.folder.iterdir()) == []


def test_it_tells_people_what_came_and_where_what_is_kept_can_be_seen(demo):
    ran = demo.start("--keep")
    told = []
    while not (told and told[-1].startswith("alertmanager  http://127.0.0.1:")):
        told.append(ran.stdout.readline())
        assert told[-1], told
    ran.send_signal(signal.SIGINT)
    _, errors = ran.communicate(timeout=30)
    assert ran.returncode == 0, errors
    output = " ".join("".join(told).split())
    assert "received AgentDuplicateToolCalls, critical" in output
    assert "runbook_url https://" in output
    assert "after the third identical call" in output
    assert "until morning: " in output
    assert "Still running, until Ctrl-C:" in output
    assert demo.left_running() == []


def test_an_early_ctrl_c_leaves_nothing_running(demo):
    ran = demo.start()
    wait_until(lambda: any("prometheus" in command for command in demo.running()))
    ran.send_signal(signal.SIGINT)
    ran.communicate(timeout=30)
    assert ran.returncode == 130
    assert demo.left_running() == []
    assert list(demo.folder.iterdir()) == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv ties servers to their parent and is not here")
def test_servers_do_not_outlive_a_demo_that_is_killed_outright(demo):
    ran = demo.start()
    wait_until(lambda: any("prometheus" in command for command in demo.running()))
    ran.kill()
    ran.communicate(timeout=30)
    assert demo.left_running() == []


def test_a_picture_that_cannot_be_written_is_refused_before_anything_starts(demo, tmp_path):
    ran = demo.start("--svg", str(tmp_path / "nowhere" / "demo.svg"))
    output, errors = ran.communicate(timeout=60)
    assert (ran.returncode, output) == (2, "")
    assert errors.endswith("nowhere/demo.svg: cannot be written: No such file or directory\n")


def test_without_prometheus_it_says_so_and_shows_verdict_and_metrics(demo, tmp_path):
    picture = tmp_path / "demo.svg"
    ran = demo.start("--svg", str(picture), PATH=str(tmp_path))
    output, errors = ran.communicate(timeout=60)
    assert ran.returncode == 3, errors
    assert "prometheus and alertmanager not found on PATH" in output
    assert "apt-get install --no-install-recommends prometheus prometheus-alertmanager" in " ".join(output.split())
    assert "verdict stuck" in output
    assert 'agent_duplicate_tool_calls_total{agent="support-bot",tool="search_orders"} 2.0' in output
    assert picture.read_text().startswith("<svg")
    assert "search_orders" in picture.read_text()

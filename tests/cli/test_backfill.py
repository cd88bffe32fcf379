"""`turnwatch backfill` over recorded runs, through the command line."""

import json
import re
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from turnwatch.cli.backfill import backfill_app
from turnwatch.settings import Settings
from turnwatch.sources.event_log import EventLog, Kind
from turnwatch.sources.scan import ScannedTurn, scan

START = 1_780_000_020


def run(*arguments):
    return CliRunner().invoke(backfill_app, [str(argument) for argument in arguments])


def lines_of(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("# EOF\n")
    return result.stdout.splitlines()


def samples(lines, name, **labels):
    """Value by time of the one series with these labels."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    found = [line for line in lines if line.startswith(name + "{") and all(pair in line for pair in wanted)]
    assert len({line.rsplit(" ", 2)[0] for line in found}) == 1, found[:3]
    return {float(line.rsplit(" ", 1)[1]): float(line.rsplit(" ", 2)[1]) for line in found}


def call(at=None, **fields):
    said = {"tool": "search", "args": {"id": 7}, "result": "pending", **fields}
    return said if at is None else {**said, "ts": at}


def trajectory(name, calls, agent="bot"):
    return {"trajectory_id": name, "agent": agent, "model": "m", "exit": "done", "calls": calls}


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def loop(tmp_path):
    """Four identical calls, 20 s apart."""
    return write(tmp_path / "loop.jsonl", trajectory("t", [call(START + 20 * n, cost_usd=0.5) for n in range(4)]))


def test_metrics_are_those_of_a_scrape_at_each_time(loop):
    lines = lines_of(loop)
    spend = samples(lines, "agent_spend_usd_total", agent="bot")
    assert spend == {**spend, START + 15: 0.5, START + 30: 1.0, START + 45: 1.5, START + 60: 2.0, START + 75: 2.0}
    identical = samples(lines, "agent_turn_identical_calls_max", tool="search")
    assert [identical[START + after] for after in (15, 30, 45, 75)] == [1, 2, 3, 4]
    # The trailing window slides past them, one after the other.
    assert [identical[START + 300 + after] for after in (15, 30, 45, 75)] == [3, 2, 1, 0]
    duplicates = samples(lines, "agent_duplicate_tool_calls_total", tool="search")
    assert (duplicates[START + 30], duplicates[START + 45], duplicates[START + 75]) == (0, 1, 2)
    open_turns = samples(lines, "agent_open_turns", agent="bot")
    assert (open_turns[START + 45], open_turns[START + 75]) == (1, 0)
    age = samples(lines, "agent_open_turn_age_seconds_max", agent="bot")
    assert age[START + 45] == 45


def test_every_series_says_where_it_is_from(loop):
    assert all(
        'job="turnwatch-backfill",instance="history"' in line for line in lines_of(loop) if not line.startswith("#")
    )
    lines = lines_of(loop, "--label", "job=mine", "--label", "cluster=c=1")
    assert all('job="mine",instance="history",cluster="c=1"' in line for line in lines if not line.startswith("#"))
    assert set(samples(lines, "up").values()) == {1}


def test_turns_of_two_files_run_at_the_same_time_and_their_conversations_stay_apart(tmp_path):
    one = write(tmp_path / "one.jsonl", trajectory("same-id", [call(START + 40 * n) for n in range(3)]))
    two = write(tmp_path / "two.jsonl", trajectory("same-id", [call(START + 20 + 40 * n) for n in range(3)]))
    lines = lines_of(one, two)
    assert max(samples(lines, "agent_open_turns").values()) == 2
    assert max(samples(lines, "agent_conversation_identical_calls_max").values()) == 3


def test_scrapes_are_as_far_apart_as_is_asked_and_farther_when_nothing_happens(tmp_path):
    day = 86_400
    runs = write(tmp_path / "runs.jsonl", trajectory("a", [call(START)]), trajectory("b", [call(START + 3 * day)]))
    times = sorted(samples(lines_of(runs, "--step", "1m"), "up"))
    apart = [(after - before, before - START) for before, after in pairwise(times)]
    assert all(gap == 60 for gap, since in apart if since < 3_600)
    assert {gap for gap, since in apart if 3_600 + 60 < since < day} == {120}
    assert {gap for gap, since in apart if day + 120 < since < 3 * day - 8 * 3_600} == {21_600}
    # The rules take a counter for new that was not there an hour ago.
    assert {gap for gap, since in apart if 3 * day - 7_200 <= since < 3 * day - 1_860} == {1_800}
    # A rise can be seen only from one sample to the next.
    (before,) = [at for at in times if START + 3 * day - 60 <= at < START + 3 * day]
    assert before + 60 in times


def test_a_gap_of_months_is_some_samples_a_day_and_loses_no_rise(tmp_path):
    day = 86_400
    runs = write(
        tmp_path / "runs.jsonl",
        trajectory("a", [call(START, cost_usd=2)]),
        trajectory("b", [call(START + 200 * day, cost_usd=3)]),
    )
    lines = lines_of(runs, "--step", "1m")
    spend = samples(lines, "agent_spend_usd_total", agent="bot")
    gap = [at for at in spend if START + 2 * day < at < START + 199 * day]
    assert len(gap) == pytest.approx(197 * 4, abs=2)
    assert {spend[at] for at in gap} == {2}
    assert all(sum(at < other <= at + day for other in gap) >= 2 for at in gap if at < START + 198 * day), "a rate"
    open_turns = samples(lines, "agent_open_turns", agent="bot")
    assert {open_turns[at] for at in gap} == {0}
    before, after = max(at for at in spend if at < START + 200 * day), min(at for at in spend if spend[at] == 5)
    assert after - before == 60


def test_turns_without_times_are_left_out_and_said_so(tmp_path, loop):
    untimed = write(tmp_path / "untimed.jsonl", trajectory("u", [call()], agent="untimed"))
    result = run(untimed)
    assert result.exit_code == 2
    assert "1 turn without times left out; --from gives them some" in result.stderr
    result = run(untimed, loop)
    assert result.exit_code == 0
    assert "1 turn without times left out" in result.stderr
    assert "untimed" not in result.stdout


def test_turns_without_times_get_some_one_after_the_other(tmp_path):
    runs = write(
        tmp_path / "untimed.jsonl",
        trajectory("a", [call() for _ in range(3)]),
        trajectory("b", [call(at) for at in (5, 65)]),  # from the start of the run
    )
    lines = lines_of(runs, "--from", "2026-06-01T00:00:00Z", "--spacing", "30s")
    start = 1_780_272_000
    calls = samples(lines, "agent_tool_calls_total", outcome="ok")
    assert min(calls) > start
    rises = [at for at in sorted(calls) if calls[at] > calls.get(at - 15, 0)]
    assert len(rises) == 5
    # A model call and the tool call that it asks for.
    assert rises[1] - rises[0] == rises[2] - rises[1] == 2 * 30
    assert rises[4] - rises[3] == 60
    assert calls[max(calls)] == 5


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--step", "soon"], "wants a duration such as"),
        (["--from", "yesterday"], "wants a time such as"),
        (["--label", "no-label"], "wants name=value"),
        (["--label", "1x=y"], "wants name=value"),
        (["--label", "__name__=y"], "a name of Prometheus's own"),
        (["--step", "0.001ms"], "50ms at least"),
        (["--spacing", "99999999d"], "1d at most"),
        (["--from", "0001-01-01"], "between the years 2000 and 2099"),
        (["--from", "9999-12-31"], "between the years 2000 and 2099"),
    ],
)
def test_options_that_make_no_sense_are_refused(loop, options, fault):
    result = run(loop, *options)
    assert result.exit_code == 2
    assert fault in " ".join(re.sub("[│╭╰─╮╯]", "", result.stderr).split())


def test_what_cannot_be_read_is_named_and_the_rest_is_written(loop, tmp_path):
    out = tmp_path / "history.om"
    result = run(loop, tmp_path / "gone.jsonl", "-o", out)
    assert result.exit_code == 2
    assert "gone.jsonl: No such file or directory" in result.stderr
    assert out.read_text(encoding="utf-8").endswith("# EOF\n")
    assert result.stdout == ""


def test_a_folder_that_is_not_there_is_an_error_in_one_line(loop, tmp_path):
    result = run(loop, "-o", tmp_path / "gone" / "history.om")
    assert "cannot be written: No such file or directory" in str(result.exception)


@pytest.mark.parametrize("recorded", ["claude-code", "codex"])
def test_turns_that_run_again_are_judged_as_they_were_when_they_were_read(recorded, pytestconfig):
    """By the same code, though their calls now begin and end in the order of time."""
    settings = Settings()
    log = EventLog(settings, starting=START)
    folder = pytestconfig.rootpath / "tests" / "sources" / "transcripts" / "recorded" / recorded
    turns = [item.state for item in scan([folder], settings, new_watch=log.new_watch) if isinstance(item, ScannedTurn)]
    assert turns
    lines = lines_of(folder, "--from", "2026-06-01")

    def total(name):
        last = {line.rsplit(" ", 2)[0]: float(line.rsplit(" ", 2)[1]) for line in lines if line.startswith(name + "{")}
        return sum(last.values())

    assert total("agent_turns_total") == len(turns)
    assert total("agent_tool_calls_total") == sum(turn.tool_calls for turn in turns)
    assert total("agent_model_calls_total") == sum(turn.iterations for turn in turns)
    assert total("agent_duplicate_tool_calls_total") == sum(turn.duplicates for turn in turns)
    assert total("agent_loops_detected_total") == sum(len(turn.verdicts) for turn in turns)
    assert total("agent_spend_usd_total") == pytest.approx(sum(turn.spend_usd or 0 for turn in turns))


def test_a_sub_agent_spends_on_its_parents_account(tmp_path):
    settings = Settings()
    log = EventLog(settings)
    watch = log.new_watch()
    parent = watch.open_turn("lead", at=float(START))
    child = watch.open_turn("helper", parent=parent, at=START + 5.0)
    for turn, at in ((child, START + 20.0), (parent, START + 30.0)):
        turn.end(at=at)
    events = list(log.events())
    assert [event.kind for event in events] == [Kind.TURN_BEGAN, Kind.TURN_BEGAN, Kind.TURN_ENDED, Kind.TURN_ENDED]
    assert events[1].body.parent == events[0].turn


@pytest.mark.parametrize("odd", [1.78e12, 1.78e18, -5.0, float("nan"), float("inf"), 1e300], ids=str)
def test_times_that_are_no_seconds_since_the_epoch_are_none(tmp_path, odd):
    """Milliseconds, nanoseconds and worse would be scraped until the year 58,000."""
    calls = [call(START), call(odd), call(START + 10)]
    runs = write(tmp_path / "runs.jsonl", trajectory("a", calls), trajectory("b", [call(odd)], agent="odd"))
    lines = lines_of(runs)
    calls = samples(lines, "agent_tool_calls_total", agent="bot", outcome="ok")
    assert max(calls) < START + 400
    assert calls[max(calls)] == 3
    lines = lines_of(runs, "--from", "2026-06-01")
    assert max(samples(lines, "agent_turns_total", agent="odd").values()) == 1


def test_calls_whose_arguments_are_nested_very_deep_are_counted(tmp_path):
    deep = "[" * 900 + "]" * 900
    calls = ",".join(f'{{"tool": "t", "args": {{"x": {deep}}}, "result": "r", "ts": {START + n}}}' for n in range(3))
    runs = tmp_path / "runs.jsonl"
    runs.write_text(f'{{"trajectory_id": "a", "agent": "bot", "exit": "done", "calls": [{calls}]}}\n', encoding="utf-8")
    lines = lines_of(runs)
    assert max(samples(lines, "agent_duplicate_tool_calls_total", tool="t").values()) == 1
    assert max(samples(lines, "turnwatch_internal_errors_total").values()) == 0

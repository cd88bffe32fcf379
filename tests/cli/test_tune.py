"""`turnwatch tune` over recorded runs, through the command line."""

import json
import re

import pytest
from typer.testing import CliRunner

from turnwatch.cli.tune import tune_app
from turnwatch.core.events import ModelCall, Usage
from turnwatch.pack.config_file import config_of
from turnwatch.pack.render import rule_file
from turnwatch.pack.tuning.outcomes import Outcome
from turnwatch.pack.tuning.runs import Quantity, Runs
from turnwatch.settings import Settings
from turnwatch.settings_file import load_settings


def run(*arguments):
    return CliRunner().invoke(tune_app, [str(argument) for argument in arguments])


def as_json(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def repeated(times, *, changes):
    """The same call so many times, whose result is the same each time or another."""
    return [
        {"tool": "bash", "args": {"command": "pytest"}, "result": f"run {number if changes else 0} of the tests"}
        for number in range(times)
    ]


def different(times):
    return [{"tool": "read", "args": {"path": f"{number}.py"}, "result": f"text {number}"} for number in range(times)]


def trajectory(name, calls, *, agent="coder", outcome="success", **fields):
    priced = [
        {**call, "tokens_in": 900, "tokens_out": 100, "cost_usd": 0.01, "ts": 1.7e9 + 5 * at}
        for at, call in enumerate(calls)
    ]
    return {
        "trajectory_id": name,
        "agent": agent,
        "model": "m",
        "exit": "done",
        "outcome": outcome,
        "calls": priced,
        **fields,
    }


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def runs(tmp_path):
    """A coder that runs its tests again and again and succeeds, and now and then is stuck; a support agent."""
    edits = [{"tool": "edit", "args": {"n": step}, "result": "ok"} for step in range(4)]
    tested = [each for pair in zip(edits, repeated(4, changes=True), strict=True) for each in pair]
    coder = [trajectory(f"works-{n}", different(10 + n % 20) + tested) for n in range(100)]
    stuck = [trajectory(f"stuck-{n}", repeated(12, changes=False), outcome="failure") for n in range(10)]
    support = [trajectory(f"asks-{n}", different(3), agent="support", outcome=None) for n in range(5)]
    return write(tmp_path / "runs.jsonl", [*coder, *stuck, *support])


def rule(report, quantity, threshold):
    (row,) = [
        row for row in report["rules"]
        if row["quantity"] == quantity and row["threshold"] == threshold and not row.get("is_present_setting")
    ]  # fmt: skip
    return row


def test_a_rule_on_identical_calls_flags_those_that_succeed_too_and_the_engine_does_not(runs):
    report = as_json(runs)
    assert report["turns"] == 115
    identical = rule(report, "identical_calls", 2)
    assert (identical["flagged"], identical["succeeded"], identical["failed"]) == (110, 100, 10)
    assert identical["precision"] == pytest.approx(10 / 110)
    stale = rule(report, "stale_calls", 2)
    assert (stale["succeeded"], stale["failed"], stale["precision"]) == (0, 10, 1)
    (stuck,) = [row for row in report["rules"] if row.get("verdict") == "stuck"]
    assert (stuck["flagged"], stuck["succeeded"], stuck["failed"]) == (10, 0, 10)


@pytest.mark.untraced
def test_present_settings_are_tried_with_their_overrides(runs, tmp_path):
    config = tmp_path / "turnwatch.yaml"

    def flagged(text):
        config.write_text(text, encoding="utf-8")
        report = as_json(runs, "--config", config)
        return {row["quantity"]: row["flagged"] for row in report["rules"] if row.get("is_present_setting")}

    standard = flagged("{}")
    assert (standard["iterations"], standard["identical_calls"], standard["tokens"]) == (110, 110, 0)
    own = flagged(
        "agents: {coder: {iteration_threshold: 30}}\n"
        "tools: {overrides: {bash: {max_identical_calls: 4}}}\n"
        "alerts: {agents: {coder: {turnTokens: 20000}}}\n"
    )
    assert (own["iterations"], own["identical_calls"], own["tokens"]) == (35, 10, 85)
    assert flagged("tools: {overrides: {bash: {polling: true}}}")["identical_calls"] == 0


@pytest.mark.untraced
def test_what_would_page_is_told_from_what_would_warn(runs, tmp_path):
    config = tmp_path / "turnwatch.yaml"

    def paging(text):
        config.write_text(text, encoding="utf-8")
        rows = as_json(runs, "--config", config)["rules"]
        return {row["quantity"]: row["flagged"] for row in rows if row.get("is_present_critical_setting")}

    standard = paging("{}")
    assert (standard["iterations"], standard["tokens"]) == (0, 0)
    assert "conversation_identical_calls" not in standard, "it pages nobody"
    # Healthy turns of the coder have 18 to 37 model calls.
    assert paging("alerts: {thresholds: {iterations: {critical: 36}}}")["iterations"] == 5
    assert "now critical" in run(runs).output


def test_suggestions_come_from_healthy_turns_with_a_margin(runs):
    report = as_json(runs)
    suggested = report["suggested"]["agents"]["coder"]
    # Healthy turns have 18 to 37 model calls.
    assert suggested["iteration_threshold"] == 56
    # Twice that, in two digits.
    assert suggested["budgets"]["max_steps"] == 120
    assert suggested["budgets"]["max_tool_calls"] == 120
    # No turn is past the present 200,000 tokens, so there is nothing to mend.
    assert report["suggested"]["alerts"]["agents"]["coder"] == {"turnSeconds": 300}
    assert suggested["budgets"]["max_tokens"] == 120_000
    assert report["suggested"]["tools"]["overrides"] == {"bash": {"max_identical_calls": 4}}


@pytest.mark.untraced
def test_an_agent_with_few_runs_gets_no_limits_and_is_named(runs):
    report = as_json(runs)
    assert report["too_few_turns"] == {"support": 5}
    assert "support" not in report["suggested"]["agents"]
    assert as_json(runs, "--min-turns", "5")["too_few_turns"] == {}
    assert "support: 5 healthy turns are too few" in run(runs).stdout


@pytest.mark.parametrize(
    ("healthy_past", "failed_past", "moves"),
    [(0, 20, False), (1, 0, False), (3, 0, True), (3, 4, False), (8, 400, False)],
)
@pytest.mark.untraced
def test_a_threshold_moves_only_where_it_raises_false_alarms_and_few_others(tmp_path, healthy_past, failed_past, moves):
    fine = [trajectory(f"fine-{n}", different(4)) for n in range(100 - healthy_past)]
    past = [trajectory(f"past-{n}", different(12)) for n in range(healthy_past)]
    failed = [trajectory(f"failed-{n}", different(12), outcome="failure") for n in range(failed_past)]
    report = as_json(write(tmp_path / "runs.jsonl", [*fine, *past, *failed]))
    (changes,) = [[change for change in report["changes"] if change["path"][-1] == "iteration_threshold"]]
    assert [change["value"] for change in changes] == ([18] if moves else [])
    assert "max_steps" in report["suggested"]["agents"]["coder"]["budgets"]


def test_a_change_says_what_was_flagged_and_what_would_be(runs):
    (change,) = [each for each in as_json(runs)["changes"] if each["path"][-1] == "iteration_threshold"]
    before, after = change["before"], change["after"]
    assert (before["flagged"], before["succeeded"], before["failed"]) == (110, 100, 10)
    assert (after["flagged"], after["succeeded"], after["failed"]) == (0, 0, 0)
    (row,) = [line for line in run(runs).stdout.splitlines() if line.startswith("tools.overrides.bash")]
    assert " ".join(row.split()[1:]) == "2 4 110 → 10 100 → 0 10 → 10"


def failing(calls, errors, tool="fetch"):
    return [
        {"tool": tool, "args": {"n": n}, "result": f"r{n}", "error": True} if n < errors else
        {"tool": tool, "args": {"n": n}, "result": f"r{n}"}
        for n in range(calls)
    ]  # fmt: skip


def test_a_tool_that_always_fails_gets_no_number_but_how_to_switch_its_alert_off(tmp_path):
    runs = write(tmp_path / "runs.jsonl", [trajectory(f"t{n}", failing(60, 60)) for n in range(2)])
    report = as_json(runs)
    assert report["always_failing"] == [{"tool": "fetch", "calls": 120, "errors": 120}]
    assert "alerts" not in report["suggested"]
    shown = " ".join(run(runs).stdout.replace("#", " ").split())
    assert 'alerts: {tools: {"fetch": {toolErrorShare: 1}}}' in shown
    config = tmp_path / "turnwatch.yaml"
    config.write_text('alerts: {tools: {"fetch": {toolErrorShare: 1}}}\n', encoding="utf-8")
    assert as_json(runs, "--config", config)["always_failing"] == []
    thresholds = re.findall(r'\{tool=~"fetch"\}\[15m\]\)\) > (\S+)', rule_file(config_of(config)))
    assert thresholds == ["1", "1"], "no share is more than all of them"


def test_a_tool_past_its_limit_with_few_calls_is_named(tmp_path):
    runs = write(tmp_path / "runs.jsonl", [trajectory("t", [*failing(20, 15), *failing(20, 1, tool="fine")])])
    report = as_json(runs)
    assert report["too_few_calls"] == [{"tool": "fetch", "calls": 20, "errors": 15}]
    assert "fetch: 15 of 20 calls failed, which is past its limit" in " ".join(run(runs).stdout.split())


@pytest.mark.untraced
def test_a_file_that_exists_is_not_written_over(runs, tmp_path):
    out = tmp_path / "settings.yaml"
    out.write_text("on_loop: nudge\n", encoding="utf-8")
    result = run(runs, "-o", out)
    assert result.exit_code == 2
    assert result.stderr == f"turnwatch: {out} exists; --force writes over it\n"
    assert out.read_text(encoding="utf-8") == "on_loop: nudge\n"
    result = run(runs, "-o", out, "--config", out)
    assert result.exit_code == 0
    assert f"{out} written; next: turnwatch pack render --config {out}" in result.stderr
    written = out.read_text(encoding="utf-8")
    assert 'on_loop: "nudge"' in written
    result = run(runs, "-o", out, "--config", out)
    assert f"nothing to change; {out} is left as it is" in result.stderr
    assert out.read_text(encoding="utf-8") == written
    assert run(runs, "-o", out, "--force").exit_code == 0
    assert "nudge" not in out.read_text(encoding="utf-8")


def test_without_any_outcome_there_are_no_columns_for_it_and_one_is_singular(tmp_path):
    runs = write(tmp_path / "runs.jsonl", [trajectory("a", different(3), outcome=None, exit=None)])
    shown = run(runs, "--min-turns", "1").stdout
    assert "Outcomes known: none" in shown
    assert "precision" not in shown
    assert "of succeeded" not in shown
    assert "in 1 turn\n" in shown
    assert "1 turns" not in shown


def test_what_would_change_comes_first_and_the_file_last(runs):
    shown = run(runs).stdout
    assert shown.index("what would change") < shown.index("of a turn") < shown.index("# Suggested by")


@pytest.mark.untraced
def test_the_suggested_file_is_one_that_exporter_and_pack_read(runs, tmp_path):
    present = tmp_path / "turnwatch.yaml"
    present.write_text(
        "on_loop: nudge\n"
        "agents:\n  coder: {max_identical_calls: 3}\n"
        "alerts:\n  agents: {coder: {turnTokens: {warning: 9000, critical: 10000}}}\n",
        encoding="utf-8",
    )
    out = tmp_path / "suggested.yaml"
    result = run(runs, "--config", present, "-o", out)
    assert result.exit_code == 0, result.output
    settings = load_settings(env={}, path=out)
    assert settings.on_loop == "nudge"
    assert settings.agents["coder"].max_identical_calls == 3
    assert settings.agents["coder"].iteration_threshold == 56
    assert settings.agents["coder"].budgets.max_steps == 120
    rules = rule_file(config_of(out))
    assert 'agent_turn_iterations_max{agent=~"coder"}) > 56' in rules
    assert 'agent_turn_tokens_max{agent=~"coder"}) > 56000' in rules
    text = out.read_text(encoding="utf-8")
    assert "median" in text
    assert "would have flagged 110 (100%)" in " ".join(text.split()).replace("# ", "")


@pytest.mark.untraced
def test_settings_that_follow_the_suggestions_are_not_changed_again(runs, tmp_path):
    out = tmp_path / "suggested.yaml"
    assert as_json(runs, "-o", out)["changes"]
    assert as_json(runs, "--config", out)["changes"] == []
    assert "Nothing to change." in run(runs, "--config", out).stdout


def test_names_that_yaml_would_take_for_something_else_are_quoted(tmp_path):
    names = ["yes", "a: b", "'", "# no", "404", "ünï", "line\nbreak", "- x", "mini-swe-agent 1.15"]
    runs = write(
        tmp_path / "runs.jsonl",
        [trajectory(f"{name}-{n}", different(12), agent=name) for name in names for n in range(3)],
    )
    out = tmp_path / "suggested.yaml"
    result = run(runs, "--min-turns", "3", "-o", out)
    assert result.exit_code == 0, result.output
    agents = load_settings(env={}, path=out).agents
    assert len(agents) == len(names)
    assert set(names) - agents.keys() <= {"line\nbreak"}
    assert all(agent.iteration_threshold == 18 for agent in agents.values())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.jsonl", '{"trajectory_id": "works-0", "stuck": "yes"}\n{"id": "works-1", "stuck": "no"}\n'),
        ("labels.csv", "turn_id,outcome\nworks-0,failed\nworks-1,resolved\nworks-2,\n"),
    ],
)
@pytest.mark.untraced
def test_outcomes_come_from_a_file(runs, tmp_path, name, text):
    labels = tmp_path / name
    labels.write_text(text, encoding="utf-8")
    report = as_json(runs, "--outcomes", labels)
    assert report["outcomes_known_from"] == {"given": 2}
    row = rule(report, "identical_calls", 2)
    assert (row["succeeded"], row["failed"]) == (1, 1)


@pytest.mark.parametrize("columns", ["30", "40", "63", "64", "80"])
def test_every_line_of_the_tables_has_its_name_however_narrow_the_terminal(runs, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    shown = run(runs).stdout
    tables = shown[: shown.index("# Suggested by")]
    assert max(map(len, tables.splitlines())) <= max(40, int(columns))
    assert "…" not in tables
    for first in ("stuck or warned", "now", "model calls", "iteration_"):
        assert re.search(rf"^ *(agents\.coder\.)?{first}", tables, re.MULTILINE), first


@pytest.mark.parametrize("text", ["", '{"id": "somebody else", "outcome": "success"}\n'])
def test_outcomes_that_fit_no_turn_are_said_to_and_nothing_is_guessed_instead(tmp_path, text):
    runs = write(tmp_path / "runs.jsonl", [trajectory("a", different(3), outcome=None)])
    labels = tmp_path / "labels.jsonl"
    labels.write_text(text, encoding="utf-8")
    result = run(runs, "--outcomes", labels)
    assert result.exit_code == 0
    assert result.stderr.startswith("turnwatch: no outcome of --outcomes is one of these turns")
    assert "Outcomes known: none" in result.stdout


def test_a_precision_over_guessed_outcomes_is_marked_as_a_guess(tmp_path):
    stuck = repeated(12, changes=False)
    recorded = [trajectory(f"known-{n}", stuck, outcome="failure") for n in range(3)]
    guessed = [trajectory(f"guessed-{n}", stuck, agent="helper", outcome=None) for n in range(2)]
    runs = write(tmp_path / "runs.jsonl", [*recorded, *guessed])
    report = as_json(runs)
    row = rule(report, "stale_calls", 10)
    assert (row["succeeded"], row["failed"], row["guessed"]) == (2, 3, 2)
    assert (row["precision"], row["precision_is_guess"]) == (0.6, True)
    known = rule({"rules": report["agents"]["coder"]["rules"]}, "stale_calls", 10)
    assert (known["precision"], known["guessed"], known["precision_is_guess"]) == (1, 0, False)
    shown = run(runs).stdout
    assert "2 guessed from how the turn ended; 3 as the files say." in " ".join(shown.split())
    assert "~: a precision that rests on guesses" in shown
    assert re.search(r"stuck +5 100% .* ~0\.60", shown)


def test_a_precision_over_recorded_outcomes_only_has_no_mark(tmp_path):
    runs = write(tmp_path / "runs.jsonl", [trajectory("a", repeated(12, changes=False), outcome="failure")])
    shown = run(runs).stdout
    assert "1.00" in shown
    assert "~" not in shown


def test_where_files_say_nothing_the_way_a_turn_ended_is_its_outcome(tmp_path):
    runs = write(
        tmp_path / "runs.jsonl",
        [
            trajectory("a", different(3), outcome=None),
            trajectory("b", different(3), outcome=None, exit="max_turns"),
            trajectory("c", different(3), outcome="success", exit="max_turns"),
        ],
    )
    report = as_json(runs)
    assert report["outcomes_known_from"] == {"ending": 2, "recorded": 1}
    (stuck,) = [row for row in report["rules"] if row.get("verdict") == "stuck"]
    assert (stuck["all_succeeded"], stuck["all_failed"]) == (2, 1)
    (stuck,) = [row for row in as_json(runs, "--outcomes", "stop_reason")["rules"] if row.get("verdict") == "stuck"]
    assert (stuck["all_succeeded"], stuck["all_failed"]) == (1, 2)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nonsense\n", ":1: not JSON"),
        ('{"outcome": "success"}\n', ":1: no id"),
        ("[1]\n", ":1: not an object"),
    ],
)
def test_a_bad_file_of_outcomes_is_refused_with_its_line(runs, tmp_path, text, fault):
    labels = tmp_path / "labels.jsonl"
    labels.write_text(text, encoding="utf-8")
    result = run(runs, "--outcomes", labels)
    assert fault in str(result.exception)


def test_calls_over_the_turns_of_a_conversation_are_counted(tmp_path):
    calls = [{**each, "turn": number} for number in range(8) for each in repeated(1, changes=True)]
    runs = write(tmp_path / "runs.jsonl", [trajectory("talk", calls)])
    report = as_json(runs)
    row = rule(report, "conversation_identical_calls", 5)
    assert (row["of"], row["flagged"], row["all"]) == ("conversations", 1, 1)


def test_what_cannot_be_read_is_named_and_the_rest_is_used(runs, tmp_path):
    result = run(runs, tmp_path / "gone.jsonl")
    assert result.exit_code == 2
    assert "gone.jsonl: No such file or directory" in result.stderr
    assert "115 turns of 2 agents" in result.stdout


def test_no_turns_at_all_is_an_error(tmp_path):
    result = run(write(tmp_path / "empty.jsonl", []))
    assert result.exit_code == 2
    assert "no turn of an agent was found" in result.stderr


def test_everything_fits_eighty_columns_and_has_no_colour_when_it_is_no_terminal(runs):
    shown = run(runs).stdout
    assert "\x1b" not in shown
    assert max(len(line) for line in shown.splitlines() if not line.lstrip().startswith(("#", "-"))) <= 80
    assert "coder: 110 turns, 100 succeeded, 10 failed, 10 stuck" in shown


def test_a_parents_spend_takes_in_the_sub_agents_that_stand_behind_it_in_the_file():
    runs = Runs(Settings())
    watch = runs.new_watch()
    parent = watch.open_turn("lead", at=0.0)
    child = watch.open_turn("helper", parent=parent, at=1.0)
    for turn in (parent, child):
        turn.begin_model(1.0)
        turn.end_model(ModelCall("m", usage=Usage(input=900, output=100), spend_usd=0.25, started=1.0, ended=2.0))
        turn.end(at=3.0)
        runs.add(turn, Outcome.SUCCESS)
    assert list(runs.agents["lead"].of(Quantity.SPEND_USD)) == [(0.5, 1)]
    assert list(runs.agents["lead"].of(Quantity.TOKENS)) == [(2000, 1)]
    assert list(runs.agents["helper"].of(Quantity.SPEND_USD)) == [(0.25, 1)]


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), -1.0, 1e300], ids=str)
def test_odd_numbers_in_a_file_do_no_harm(tmp_path, odd):
    calls = [
        {**each, "ts": at, "cost_usd": cost}
        for each, at, cost in zip(different(3), (5, odd, 6), (1, odd, 1), strict=True)
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"trajectory_id": "a", "agent": "bot", "calls": calls}) + "\n", encoding="utf-8")
    result = run(path, "--min-turns", "1")
    assert result.exit_code == 0, result.output
    assert "1 turn of 1 agent" in result.stdout

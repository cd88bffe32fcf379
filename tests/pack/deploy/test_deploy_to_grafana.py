"""Dashboards to Grafana, by both of its interfaces. The Grafana is a strict stand-in: no server can be had here."""

import pytest
from grafana_stub import TOKEN, serving_grafana
from typer.testing import CliRunner

from turnwatch.cli.pack import pack_app
from turnwatch.pack.deploy.changes import DeployConflictError, DeployError
from turnwatch.pack.home import pack_home

UIDS = sorted(path.stem for path in (pack_home() / "dashboards").glob("*.json"))
MINE = {"title": "Mine", "tags": ["turnwatch"]}


@pytest.fixture(params=[False, True], ids=["before 12", "12 and later"])
def grafana(request, monkeypatch):
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
    with serving_grafana(since_twelve=request.param) as grafana:
        yield grafana


def run(command, grafana, *more):
    return CliRunner().invoke(pack_app, [command, "--grafana-url", grafana.url, *map(str, more)])


def error_of(result, kind=DeployError):
    assert isinstance(result.exception, kind), result.output
    assert TOKEN not in str(result.exception) + result.output
    return str(result.exception)


def test_dashboards_are_deployed_once_and_then_up_to_date(grafana):
    assert run("diff", grafana).exit_code == 1
    run("deploy", grafana, "--dry-run")
    assert grafana.writes == 0
    result = run("deploy", grafana)
    assert result.output.splitlines() == [f"Grafana: create {uid}" for uid in UIDS]
    assert sorted(grafana.dashboards) == UIDS
    assert grafana.folders == {"turnwatch": "Agents"}
    assert run("deploy", grafana).stdout == "Grafana: up to date\n"
    assert grafana.writes == len(UIDS)
    assert run("diff", grafana).exit_code == 0


def test_what_was_changed_in_grafana_is_shown_and_put_right(grafana):
    run("deploy", grafana)
    changed = {**grafana.dashboards["turnwatch-turns"], "title": "Edited"}
    grafana.put("turnwatch-turns", changed)
    shown = run("diff", grafana).output
    assert "Grafana: update turnwatch-turns" in shown
    assert '- "title": "Edited"' in shown
    assert run("deploy", grafana).stdout == "Grafana: update turnwatch-turns\n"
    assert grafana.dashboards["turnwatch-turns"]["title"] == "Agents / Turns"


def test_what_others_made_is_replaced_only_with_force(grafana):
    grafana.put("turnwatch-turns", {"title": "Somebody's"})
    assert "turnwatch-turns" in error_of(run("deploy", grafana), DeployConflictError)
    assert list(grafana.dashboards) == ["turnwatch-turns"]
    assert run("deploy", grafana, "--force").exit_code == 0
    assert sorted(grafana.dashboards) == UIDS


def test_prune_removes_only_what_turnwatch_made(grafana):
    run("deploy", grafana)
    grafana.put("turnwatch-old", {"title": "Old", "tags": ["turnwatch"]})
    grafana.put("my-board", MINE)
    grafana.put("turnwatch-mine", {"title": "Mine", "tags": []})
    assert run("deploy", grafana).stdout == "Grafana: up to date\n"
    assert run("deploy", grafana, "--prune").stdout == "Grafana: delete turnwatch-old\n"
    assert sorted(grafana.dashboards) == sorted([*UIDS, "my-board", "turnwatch-mine"])


def test_a_failure_half_way_is_taken_back(grafana):
    run("deploy", grafana)
    del grafana.dashboards[UIDS[0]]
    edited = {**grafana.dashboards[UIDS[1]], "title": "Edited"}
    grafana.put(UIDS[1], edited)
    del grafana.dashboards[UIDS[-1]]
    grafana.refuse = UIDS[-1]
    said = error_of(run("deploy", grafana))
    assert "disk full" in said
    assert "The dashboards are as they were before" in said
    assert sorted(grafana.dashboards) == UIDS[1:-1]
    assert grafana.dashboards[UIDS[1]] == edited


def test_a_change_by_somebody_else_meanwhile_is_a_conflict(grafana, monkeypatch):
    run("deploy", grafana)
    grafana.put("turnwatch-turns", {**grafana.dashboards["turnwatch-turns"], "title": "Edited"})
    read = grafana.read_new if grafana.since_twelve else grafana.read_old

    def read_and_change(uid):
        answer = read(uid)
        grafana.versions[uid] += 1
        return answer

    monkeypatch.setattr(grafana, "read_new" if grafana.since_twelve else "read_old", read_and_change)
    assert "changed by somebody else" in error_of(run("deploy", grafana))


def test_a_token_can_come_from_a_file_and_a_wrong_one_is_refused(grafana, monkeypatch, tmp_path):
    monkeypatch.delenv("GRAFANA_TOKEN")
    assert "401" in error_of(run("deploy", grafana))
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n", encoding="utf-8")
    assert run("deploy", grafana, "--grafana-token-file", token).exit_code == 0

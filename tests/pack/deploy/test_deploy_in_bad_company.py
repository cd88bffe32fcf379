"""Deployment beside others: other deployments, other people's files and links, interruptions, other kinds of server."""

import fcntl
import json
import os
import threading

import pytest
import yaml
from grafana_stub import TOKEN, serving_grafana
from test_secrets_stay import answering
from typer.testing import CliRunner

from turnwatch.cli.pack import pack_app
from turnwatch.demo.loopback import get_json
from turnwatch.demo.servers import running_prometheus
from turnwatch.pack.deploy.changes import DeployConflictError, DeployError
from turnwatch.pack.deploy.files import prometheus
from turnwatch.pack.deploy.grafana import grafana
from turnwatch.pack.deploy.http import Server
from turnwatch.pack.home import pack_home
from turnwatch.pack.render import RULES_FILE, render

SHIPPED = (pack_home() / RULES_FILE).read_text("utf-8")


def run(*arguments):
    return CliRunner().invoke(pack_app, [str(argument) for argument in arguments])


def error_of(result, kind=DeployError):
    assert isinstance(result.exception, kind), result.exception
    return str(result.exception)


def loaded(content):
    """What a Prometheus says that has loaded this file."""
    groups = yaml.safe_load(content)["groups"]
    for group in groups:
        group["file"] = "/elsewhere/turnwatch.rules.yaml"
        for rule in group["rules"]:
            rule["name"] = rule.pop("alert")
    return json.dumps({"data": {"groups": groups}})


@pytest.fixture
def server():
    """A Prometheus that takes everything and has the shipped rules once it has been reloaded."""
    held = [json.dumps({"data": {"groups": []}})]

    def answer(request):
        if request.command == "POST":
            held[0] = loaded(SHIPPED)
        request.reply(200, held[0])

    with answering(answer) as (url, _):
        yield Server(url)


@pytest.fixture
def folder(tmp_path):
    rules = tmp_path / "rules"
    rules.mkdir()
    return rules


@pytest.fixture
def target(server, folder):
    return prometheus(server, folder, pack_home())


def to(server, folder, *more):
    return ["--prometheus-url", server.url, "--rules-folder", folder, *more]


def test_a_link_is_left_alone_even_by_force(server, folder, tmp_path):
    other = tmp_path / "somebodys"
    other.write_text("mine", encoding="utf-8")
    (folder / "turnwatch.rules.yaml").symlink_to(other)
    for options in ((), ("--force",)):
        assert "is a link" in error_of(run("deploy", *to(server, folder, *options)))
    assert other.read_text("utf-8") == "mine"


def test_pruning_leaves_links_and_the_other_files_of_a_pack(server, tmp_path):
    pack = tmp_path / "pack"
    render(None, pack)
    rules = pack / "alert_rules"
    old, link = rules / "old.yaml", rules / "link.yaml"
    old.write_text(SHIPPED, encoding="utf-8")
    link.symlink_to(old)
    before = {path.name for path in rules.iterdir()}
    assert run("deploy", pack, *to(server, rules, "--prune")).stdout == f"Prometheus: delete {old}\n"
    assert before - {path.name for path in rules.iterdir()} == {"old.yaml"}


def test_a_second_deployment_at_the_same_time_is_refused(target, folder):
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    changes = target.changes(prune=False)
    try:
        with pytest.raises(DeployError, match=r"another deployment is at work .* Nothing was changed"):
            target.apply(changes)
    finally:
        os.close(held)
    assert list(folder.iterdir()) == []
    target.apply(changes)
    assert [path.name for path in folder.iterdir()] == ["turnwatch.rules.yaml"]


def test_of_deployments_at_the_same_time_one_is_whole(server, folder):
    together = threading.Barrier(4)
    failed = []

    def deploy_once():
        target = prometheus(server, folder, pack_home())
        changes = target.changes(prune=False)
        together.wait()
        try:
            target.apply(changes)
        except DeployError as error:
            failed.append(str(error))

    threads = [threading.Thread(target=deploy_once) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) <= 3
    assert all("another deployment" in said or "in the meantime" in said for said in failed)
    assert [path.name for path in folder.iterdir()] == ["turnwatch.rules.yaml"]
    assert (folder / "turnwatch.rules.yaml").read_text("utf-8") == SHIPPED


def test_a_file_that_changed_after_it_was_compared_is_left_alone(target, folder):
    changes = target.changes(prune=False)
    file = folder / "turnwatch.rules.yaml"
    file.write_text("groups: []\n", encoding="utf-8")
    with pytest.raises(DeployError, match="changed by somebody else in the meantime"):
        target.apply(changes)
    assert file.read_text("utf-8") == "groups: []\n"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_half_way_is_taken_back(target, folder, monkeypatch, interruption):
    reloads = []

    def interrupted():
        reloads.append(1)
        if len(reloads) == 1:
            raise interruption

    changes = target.changes(prune=False)
    monkeypatch.setattr(target, "_reload", interrupted)
    with pytest.raises(interruption):
        target.apply(changes)
    assert list(folder.iterdir()) == []
    assert len(reloads) == 2


def test_bytes_that_are_no_text_are_put_back_as_they_were(folder):
    file = folder / "turnwatch.rules.yaml"
    file.write_bytes(b"\xff\x00mine\r\n")

    def answer(request):
        request.reply(400 if request.command == "POST" else 200)

    with answering(answer) as (url, _):
        said = error_of(run("deploy", *to(Server(url), folder, "--force")))
    assert "could not be reloaded" in said
    assert file.read_bytes() == b"\xff\x00mine\r\n"


@pytest.mark.parametrize("body", ["{}", '{"data": {"groups": [1]}}', "[]", "null", "<html>", "[" * 100_000])
def test_a_server_of_another_kind_is_noticed_before_anything_is_written(folder, body):
    with answering(lambda request: request.reply(200, body)) as (url, _):
        said = error_of(run("deploy", *to(Server(url), folder)))
    assert "it answers as no such server does. Nothing was changed" in said or "something else than JSON" in said
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("body", ["[]", "null", '{"versions": 7}', '{"versions": [{"version": "v1"}]}', "<html>"])
def test_a_grafana_of_another_kind_is_an_error_in_one_line(body):
    with answering(lambda request: request.reply(200, body)) as (url, _):
        assert "\n" not in error_of(run("deploy", "--grafana-url", url))


def test_a_server_that_answers_with_a_page_for_people_is_not_quoted():
    with answering(lambda request: request.reply(404, "<!doctype html><p>Not found</p>")) as (url, _):
        said = error_of(run("deploy", "--grafana-url", url))
    assert "is the address right?" in said
    assert "<" not in said


def test_a_folder_that_is_missing_or_not_to_be_written_is_named(server, folder):
    missing = folder / "missing"
    assert str(missing) in error_of(run("deploy", *to(server, missing)))
    assert str(missing) in error_of(run("deploy", *to(server, missing, "--prune")))


def test_a_folder_that_holds_no_pack_is_named(server, folder, tmp_path):
    assert "is not there: is" in error_of(run("deploy", tmp_path, *to(server, folder)))
    (tmp_path / "dashboards").mkdir()
    (tmp_path / "dashboards" / "mine.json").write_text("{", encoding="utf-8")
    assert "mine.json is not JSON" in error_of(run("deploy", tmp_path, "--grafana-url", server.url))


def test_a_conflict_on_one_server_leaves_the_others_as_they_are(server, folder, tmp_path):
    file = tmp_path / "alertmanager.yml"
    file.write_text("route: {receiver: mine}\n", encoding="utf-8")
    both = [*to(server, folder), "--alertmanager-url", server.url, "--alertmanager-file", file]
    said = error_of(run("deploy", *both), DeployConflictError)
    assert f"Alertmanager: {file}" in said
    assert list(folder.iterdir()) == []


def test_other_thresholds_in_a_file_of_the_same_name_are_noticed(folder):
    (folder / "turnwatch.rules.yaml").write_text(SHIPPED + "# older\n", encoding="utf-8")
    other = loaded(SHIPPED.replace("limit 8 unless", "limit 9 unless"))
    with answering(lambda request: request.reply(200, other)) as (url, _):
        assert "it holds other rules" in error_of(run("deploy", *to(Server(url), folder)))


def test_two_teams_have_a_file_of_one_name_in_folders_of_their_own(tmp_path):
    packs = {}
    for team in ("a", "b"):
        packs[team] = tmp_path / f"pack-{team}"
        render({"selector": f'team="{team}"', "enabled": {"AgentSpendGrowth": team == "a"}}, packs[team])
        (tmp_path / "rules" / team).mkdir(parents=True)
    rule_files = [f"{tmp_path}/rules/{team}/*.yaml" for team in packs]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"rule_files": rule_files}), "utf-8")
    with running_prometheus(tmp_path, "--web.enable-lifecycle") as url:
        for team, pack in packs.items():
            result = run("deploy", pack, *to(Server(url), tmp_path / "rules" / team))
            assert result.exit_code == 0, result.exception
        files = {group["file"] for group in get_json(f"{url}/api/v1/rules")["data"]["groups"]}
    assert files == {str(tmp_path / "rules" / team / "turnwatch.rules.yaml") for team in packs}


@pytest.fixture(params=[False, True], ids=["before 12", "12 and later"])
def stub(request, monkeypatch):
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
    with serving_grafana(since_twelve=request.param) as stub:
        yield stub


def test_a_dashboard_stays_in_the_folder_that_somebody_put_it_into(stub):
    stub.folders["theirs"] = "Theirs"
    stub.put("turnwatch-turns", {"title": "Old", "tags": ["turnwatch"]}, "theirs")
    stub.noted["turnwatch-turns"] = {"example.com/owner": "somebody"}
    assert run("deploy", "--grafana-url", stub.url).exit_code == 0
    assert stub.dashboards["turnwatch-turns"]["title"] == "Agents / Turns"
    assert stub.folder_of["turnwatch-turns"] == "theirs"
    assert stub.folder_of["turnwatch-spend"] == "turnwatch"


def test_what_was_pruned_before_a_failure_goes_back_into_its_folder(stub):
    run("deploy", "--grafana-url", stub.url)
    stub.folders["theirs"] = "Theirs"
    stub.put("turnwatch-spend", {**stub.dashboards["turnwatch-spend"], "title": "Edited"}, "theirs")
    target = grafana(Server(stub.url, TOKEN), "turnwatch", pack_home())
    changes = target.changes(prune=True)
    stub.refuse = "turnwatch-spend"
    with pytest.raises(DeployError, match="disk full"):
        target.apply(changes)
    assert (stub.dashboards["turnwatch-spend"]["title"], stub.folder_of["turnwatch-spend"]) == ("Edited", "theirs")


def test_a_dashboard_that_changed_after_it_was_compared_is_left_alone(stub):
    run("deploy", "--grafana-url", stub.url)
    stub.put("turnwatch-turns", {**stub.dashboards["turnwatch-turns"], "title": "Edited"}, "turnwatch")
    target = grafana(Server(stub.url, TOKEN), "turnwatch", pack_home())
    changes = target.changes(prune=False)
    stub.put("turnwatch-turns", {**stub.dashboards["turnwatch-turns"], "title": "Edited again"}, "turnwatch")
    with pytest.raises(DeployError, match="changed by somebody else in the meantime"):
        target.apply(changes)
    assert stub.dashboards["turnwatch-turns"]["title"] == "Edited again"


def test_a_grafana_with_a_draft_of_the_new_interface_is_spoken_to_in_the_old_one(monkeypatch):
    monkeypatch.setenv("GRAFANA_TOKEN", TOKEN)
    with serving_grafana(since_twelve=False) as stub:
        stub.draft = True
        assert run("deploy", "--grafana-url", stub.url).exit_code == 0
        assert len(stub.dashboards) == 6


def test_titles_in_every_script_go_there_and_come_back(stub, tmp_path):
    pack = tmp_path / "pack"
    render(None, pack)
    (pack / "dashboards" / "mine.json").write_text(
        json.dumps({"uid": "turnwatch-mine", "title": "Агенты — 智能体 🔁", "tags": ["turnwatch"]}), "utf-8"
    )
    assert "create turnwatch-mine" in run("deploy", pack, "--grafana-url", stub.url).output
    assert stub.dashboards["turnwatch-mine"]["title"] == "Агенты — 智能体 🔁"
    assert run("deploy", pack, "--grafana-url", stub.url).stdout == "Grafana: up to date\n"

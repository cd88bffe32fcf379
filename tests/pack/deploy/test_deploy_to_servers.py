"""`turnwatch pack diff` and `deploy` against real Prometheus and Alertmanager."""

import shutil

import pytest
import yaml
from typer.testing import CliRunner

from turnwatch.cli.pack import pack_app
from turnwatch.demo.loopback import get_json
from turnwatch.demo.servers import running_alertmanager, running_prometheus
from turnwatch.pack.deploy.changes import DeployConflictError, DeployError
from turnwatch.pack.home import pack_home
from turnwatch.pack.render import ALERTMANAGER_FILE, RULES_FILE, render

GROUPS = {group["name"] for group in yaml.safe_load((pack_home() / RULES_FILE).read_text("utf-8"))["groups"]}


def run(*arguments):
    return CliRunner().invoke(pack_app, [str(argument) for argument in arguments])


def error_of(result, kind=DeployError):
    assert isinstance(result.exception, kind), result.output
    return str(result.exception)


@pytest.fixture
def pack(tmp_path):
    """A rendered pack that a test may spoil."""
    folder = tmp_path / "pack"
    render(None, folder)
    return folder


@pytest.fixture
def rules_folder(tmp_path):
    folder = tmp_path / "rules"
    folder.mkdir()
    return folder


@pytest.fixture
def start_prometheus(tmp_path, rules_folder):
    def start(*flags):
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"rule_files": [f"{rules_folder}/*.yaml"]}), "utf-8")
        return running_prometheus(tmp_path, *flags)

    return start


@pytest.fixture
def prometheus(start_prometheus):
    with start_prometheus("--web.enable-lifecycle") as url:
        yield url


def loaded_groups(url):
    return {group["name"] for group in get_json(f"{url}/api/v1/rules")["data"]["groups"]}


def to(url, rules_folder, *more):
    return ["--prometheus-url", url, "--rules-folder", rules_folder, *more]


def test_rules_are_deployed_once_and_then_up_to_date(prometheus, rules_folder):
    file = rules_folder / "turnwatch.rules.yaml"
    before = run("diff", *to(prometheus, rules_folder))
    assert before.exit_code == 1
    assert f"Prometheus: create {file}" in before.output
    assert "+  - alert: AgentDuplicateToolCalls" in before.output

    assert f"create {file}" in run("deploy", *to(prometheus, rules_folder, "--dry-run")).output
    assert not file.exists()

    assert run("deploy", *to(prometheus, rules_folder)).stdout == f"Prometheus: create {file}\n"
    assert loaded_groups(prometheus) == GROUPS
    up_to_date = f"Prometheus: up to date: {file} there already, the same, and loaded\n"
    assert run("deploy", *to(prometheus, rules_folder)).stdout == up_to_date
    after = run("diff", *to(prometheus, rules_folder))
    assert (after.exit_code, after.stdout) == (0, up_to_date)


def test_links_that_only_this_machine_can_open_are_said(prometheus, rules_folder, pack):
    result = run("deploy", pack, *to(prometheus, rules_folder))
    assert result.stderr.startswith("alerts link to dashboards at http://localhost:3000/d, which others cannot open")
    assert result.stderr.count("\n") == 1
    render({"dashboardBaseUrl": "https://grafana.corp.test/d"}, pack)
    assert run("deploy", pack, *to(prometheus, rules_folder)).stderr == ""


def test_what_others_made_is_replaced_only_with_force(prometheus, rules_folder):
    file = rules_folder / "turnwatch.rules.yaml"
    file.write_text("groups: []\n", encoding="utf-8")
    assert "--force" in error_of(run("deploy", *to(prometheus, rules_folder)), DeployConflictError)
    assert file.read_text(encoding="utf-8") == "groups: []\n"
    result = run("deploy", *to(prometheus, rules_folder, "--force"))
    assert result.stdout == f"Prometheus: replaced {file} (backup at {file}.bak)\n"
    assert file.with_name(f"{file.name}.bak").read_text(encoding="utf-8") == "groups: []\n"
    assert loaded_groups(prometheus) == GROUPS


def test_prune_removes_only_what_turnwatch_made(prometheus, rules_folder):
    old, other = rules_folder / "old.yaml", rules_folder / "other.yaml"
    old.write_text((pack_home() / RULES_FILE).read_text("utf-8").replace("turnwatch-", "older-"), "utf-8")
    other.write_text("groups: []\n", encoding="utf-8")
    assert "delete" not in run("deploy", *to(prometheus, rules_folder)).output
    assert run("deploy", *to(prometheus, rules_folder, "--prune")).stdout == f"Prometheus: delete {old}\n"
    assert other.exists()
    assert loaded_groups(prometheus) == GROUPS


def test_rules_that_the_server_refuses_are_taken_back(prometheus, rules_folder, pack):
    run("deploy", *to(prometheus, rules_folder))
    file = rules_folder / "turnwatch.rules.yaml"
    good = file.read_text(encoding="utf-8")
    (pack / RULES_FILE).write_text(good.replace("max by", "max of"), encoding="utf-8")
    said = error_of(run("deploy", pack, *to(prometheus, rules_folder)))
    assert "refused the files" in said
    assert "as they were before, and the server was reloaded" in said
    assert said.endswith(f"`turnwatch pack check {pack}` names the line")
    assert file.read_text(encoding="utf-8") == good
    assert loaded_groups(prometheus) == GROUPS


def test_a_folder_that_the_server_does_not_read_is_noticed(prometheus, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = error_of(run("deploy", *to(prometheus, elsewhere)))
    assert f"Add the line `- {elsewhere}/turnwatch.rules.yaml`" in said
    assert list(elsewhere.iterdir()) == []


def test_the_same_rules_from_another_folder_do_not_count(prometheus, rules_folder, tmp_path):
    run("deploy", *to(prometheus, rules_folder))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = error_of(run("deploy", *to(prometheus, elsewhere)))
    assert f"its rule_files do not name {elsewhere}" in said
    assert f"what it has is of {rules_folder}/turnwatch.rules.yaml" in said
    assert list(elsewhere.iterdir()) == []
    assert loaded_groups(prometheus) == GROUPS


def test_a_file_that_somebody_put_there_and_nobody_loaded_is_loaded(prometheus, rules_folder):
    file = rules_folder / "turnwatch.rules.yaml"
    shutil.copyfile(pack_home() / RULES_FILE, file)
    before = run("diff", *to(prometheus, rules_folder))
    assert before.exit_code == 1
    assert f"Prometheus: reload {file}\n{file} is there already, and the same, but" in before.output
    assert loaded_groups(prometheus) == set()
    assert run("deploy", *to(prometheus, rules_folder)).stdout == f"Prometheus: reload {file}\n"
    assert loaded_groups(prometheus) == GROUPS


def test_of_a_file_that_is_there_but_not_read_the_line_to_add_is_said(prometheus, rules_folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = elsewhere / "turnwatch.rules.yaml"
    shutil.copyfile(pack_home() / RULES_FILE, file)
    now = f"rule_files (now: {rules_folder}/*.yaml)"
    line = f"Add the line `- {file}`, or the same file as Prometheus sees it, to {now}"
    shown = run("diff", *to(prometheus, elsewhere))
    assert shown.exit_code == 1
    assert line in shown.output
    said = error_of(run("deploy", *to(prometheus, elsewhere)))
    assert f"{line} in prometheus.yml" in said
    assert said.endswith("Nothing was changed")
    assert file.read_bytes() == (pack_home() / RULES_FILE).read_bytes()


def test_a_file_that_was_removed_and_not_unloaded_can_be_deployed_again(prometheus, rules_folder):
    run("deploy", *to(prometheus, rules_folder))
    (rules_folder / "turnwatch.rules.yaml").unlink()
    assert run("deploy", *to(prometheus, rules_folder)).exit_code == 0
    assert loaded_groups(prometheus) == GROUPS


def test_a_server_that_takes_no_reloads_is_left_alone(start_prometheus, rules_folder):
    with start_prometheus() as url:
        assert "--web.enable-lifecycle" in error_of(run("deploy", *to(url, rules_folder)))
    assert list(rules_folder.iterdir()) == []


def test_a_server_that_is_down_is_said_before_anything_is_written(rules_folder):
    assert "does not answer" in error_of(run("deploy", *to("http://127.0.0.1:9", rules_folder)))
    assert list(rules_folder.iterdir()) == []


@pytest.fixture
def alertmanager(tmp_path):
    """A real Alertmanager that was started with a file of ours, and that file."""
    file = tmp_path / "alertmanager.yml"
    shutil.copy(pack_home() / ALERTMANAGER_FILE, file)
    shutil.copy(pack_home() / "alert_rules" / "turnwatch.tmpl", tmp_path)
    with running_alertmanager(tmp_path) as url:
        yield url, file


def fill_in(pack):
    """Put addresses of one's own in the place of the example's."""
    routes = pack / ALERTMANAGER_FILE
    filled = routes.read_text("utf-8").replace("example.com", "corp.test").replace("127.0.0.1:8080", "127.0.0.1:9")
    routes.write_text(filled.replace("agents-chat", "agents-room"), "utf-8")


def test_routes_are_deployed_once_and_then_up_to_date(alertmanager, pack):
    url, file = alertmanager
    fill_in(pack)
    target = ["--alertmanager-url", url, "--alertmanager-file", file]
    assert run("deploy", pack, *target).stdout == f"Alertmanager: update {file}\n"
    assert "agents-room" in get_json(f"{url}/api/v2/status")["config"]["original"]
    both = f"{file.with_name('turnwatch.tmpl')} and {file}"
    assert (
        run("deploy", pack, *target).stdout == f"Alertmanager: up to date: {both} there already, the same, and loaded\n"
    )


THEIRS = "route: {receiver: on-call}\nreceivers: [{name: on-call, webhook_configs: [{url: http://127.0.0.1:9/}]}]\n"


def test_an_alertmanager_file_of_ones_own_is_not_replaced_by_the_example(alertmanager, pack):
    url, file = alertmanager
    file.write_text(THEIRS, encoding="utf-8")
    target = ["--alertmanager-url", url, "--alertmanager-file", file]
    said = error_of(run("deploy", pack, *target), DeployConflictError)
    assert "--force" not in said
    assert f"Merge routes, inhibition and receivers of {pack / ALERTMANAGER_FILE} into it by hand" in said
    said = error_of(run("deploy", pack, *target, "--force"))
    assert "agents-page: email_configs.smarthost (example.com)" in said
    assert "agents-chat: webhook_configs.url (127.0.0.1:8080)" in said
    assert "Put your own receivers into it, or leave --alertmanager-url and --alertmanager-file out" in said
    assert file.read_text(encoding="utf-8") == THEIRS


def test_an_alertmanager_file_that_force_replaces_is_kept_beside_it(alertmanager, pack):
    url, file = alertmanager
    file.write_text(THEIRS, encoding="utf-8")
    older = file.with_name(f"{file.name}.bak")
    older.write_text("older", encoding="utf-8")
    fill_in(pack)
    result = run("deploy", pack, "--alertmanager-url", url, "--alertmanager-file", file, "--force")
    assert result.stdout == f"Alertmanager: replaced {file} (backup at {file}.bak2)\n"
    assert file.with_name(f"{file.name}.bak2").read_text(encoding="utf-8") == THEIRS
    assert older.read_text(encoding="utf-8") == "older"


def test_a_refused_replacement_leaves_no_backup(alertmanager, pack):
    url, file = alertmanager
    file.write_text(THEIRS, encoding="utf-8")
    fill_in(pack)
    routes = pack / ALERTMANAGER_FILE
    routes.write_text(routes.read_text("utf-8").replace("group_wait: 10s", "group_wait: soon"), "utf-8")
    before = sorted(file.parent.iterdir())
    target = ["--alertmanager-url", url, "--alertmanager-file", file]
    assert "as they were before" in error_of(run("deploy", pack, *target, "--force"))
    assert file.read_text(encoding="utf-8") == THEIRS
    assert sorted(file.parent.iterdir()) == before


def test_routes_that_the_server_refuses_are_taken_back_with_their_template(alertmanager, pack):
    url, file = alertmanager
    before = [path.read_text("utf-8") for path in (file, file.with_name("turnwatch.tmpl"))]
    (pack / "alert_rules" / "turnwatch.tmpl").write_text("{{/* Made by turnwatch */}}{{ define }}", "utf-8")
    said = error_of(run("deploy", pack, "--alertmanager-url", url, "--alertmanager-file", file))
    assert "as they were before, and the server was reloaded" in said
    assert [path.read_text("utf-8") for path in (file, file.with_name("turnwatch.tmpl"))] == before


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ([], "name a server"),
        (["--prometheus-url", "http://x"], "--rules-folder go together"),
        (["--alertmanager-file", "x"], "--alertmanager-file go together"),
        (["--grafana-url", "http://x", "--grafana-token-file", "/nowhere"], "/nowhere"),
    ],
)
def test_a_destination_that_is_not_whole_is_refused(options, fault):
    assert fault in error_of(run("deploy", *options))

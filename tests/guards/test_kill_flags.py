from __future__ import annotations

import os
import subprocess
import sys

import fakeredis
import pytest
import redis
from typer.testing import CliRunner

import turnwatch as tw
from turnwatch.cli import app_for
from turnwatch.guards.kill import DirectoryKills, MemoryKills, RedisKills, kills_of

LOOK = "from turnwatch.guards.kill import DirectoryKills as D; import sys; print(D(sys.argv[1]).is_killed(sys.argv[2]))"


@pytest.fixture
def directory(tmp_path) -> DirectoryKills:
    return DirectoryKills(tmp_path / "kill")


@pytest.fixture
def stores(directory):
    return [MemoryKills(), directory, RedisKills(fakeredis.FakeRedis())]


def test_a_flag_goes_up_and_down_in_every_store(stores):
    for store in stores:
        assert not store.is_killed("c-1")
        store.kill("c-1")
        assert store.is_killed("c-1")
        assert not store.is_killed("c-2")
        store.revive("c-1")
        assert not store.is_killed("c-1")


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", "c\0d", "\ud800", "x" * 10_000])
def test_any_text_may_be_an_id(directory, name):
    directory.kill(name)
    assert directory.is_killed(name)
    assert len(list(directory.directory.iterdir())) == 1


def test_another_process_sees_the_flag(directory):
    directory.kill("c-1")
    seen = subprocess.run(
        [sys.executable, "-c", LOOK, directory.directory, "c-1"], capture_output=True, text=True, check=True
    )
    assert seen.stdout.strip() == "True"


def test_the_directory_is_its_owners(directory):
    directory.kill("c-1")
    assert directory.directory.stat().st_mode & 0o777 == 0o700


def test_flags_in_somebody_elses_directory_do_not_count(tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    theirs = tmp_path / "theirs"
    DirectoryKills(theirs).kill("c-1")
    os.chown(theirs, 4711, 4711)
    assert DirectoryKills(theirs).is_killed("c-1")
    ours = DirectoryKills(theirs, must_be_ours=True)
    assert not ours.is_killed("c-1")
    with pytest.raises(tw.TurnwatchError, match="belongs to another user"):
        ours.kill("c-2")


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(tw.TurnwatchError, match="no flag can be put"):
        DirectoryKills(tmp_path / "file").kill("c-1")


def test_redis_forgets_a_flag_after_a_day():
    client = fakeredis.FakeRedis()
    RedisKills(client).kill("c-1")
    (key,) = client.keys()
    assert 0 < client.ttl(key) <= 86_400


def test_a_redis_that_is_down_is_asked_once_in_five_seconds():
    server = fakeredis.FakeServer()
    asked = []

    class Client(fakeredis.FakeRedis):
        def exists(self, key):
            asked.append(key)
            raise redis.ConnectionError("down")

    kills = RedisKills(Client(server=server))
    with pytest.raises(redis.ConnectionError):
        kills.is_killed("c-1")
    assert not kills.is_killed("c-1")
    assert len(asked) == 1


def test_memory_is_bounded():
    kills = MemoryKills()
    for number in range(10_050):
        kills.kill(str(number))
    assert kills.is_killed("10049")
    assert not kills.is_killed("0")


def test_a_killed_conversation_stops_at_its_next_call(watch):
    kills = kills_of(watch.settings)
    with tw.turn("a", "c-killed", watch=watch) as turn:
        turn.call_tool("lookup", lambda: 1)
        kills.kill("c-killed")
        with pytest.raises(tw.ConversationKilled), turn.model_call("m"):
            pytest.fail("the call must not start")
        with pytest.raises(tw.ConversationKilled) as stopped:
            turn.call_tool("lookup", pytest.fail)
        kills.revive("c-killed")
        turn.call_tool("lookup", lambda: 2)
    assert stopped.value.stop_reason == turn.stop_reason == "killed"
    assert watch.value("agent_guard_stops_total", "a", "killed") == 1


def test_a_turn_without_a_conversation_is_killed_by_its_own_id(watch):
    with tw.turn("a", watch=watch, turn_id="t-1") as turn:
        kills_of(watch.settings).kill("t-1")
        with pytest.raises(tw.ConversationKilled):
            turn.call_tool("lookup", pytest.fail)
        kills_of(watch.settings).revive("t-1")


def test_a_store_of_the_users_own_is_asked(watch):
    kills = MemoryKills()
    kills.kill("c-1")
    with tw.turn("a", "c-1", watch=watch, kills=kills) as turn, pytest.raises(tw.ConversationKilled):
        turn.call_tool("lookup", pytest.fail)


def test_the_command_kills_and_revives(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWATCH_KILL_DIR", str(tmp_path))
    run = CliRunner().invoke
    result = run(app_for(["kill"]), ["kill", "c-9"])
    assert (result.exit_code, result.output.strip()) == (0, "c-9 stops at its next model or tool call")
    assert DirectoryKills(tmp_path).is_killed("c-9")
    assert run(app_for(["kill"]), ["kill", "--undo", "c-9"]).exit_code == 0
    assert not DirectoryKills(tmp_path).is_killed("c-9")

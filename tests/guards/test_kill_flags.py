from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

import turnwatch as tw
from turnwatch.cli import app_for
from turnwatch.core.watch import Watch
from turnwatch.guards.kill import AllKills, flag_of_agent, kills_of
from turnwatch.guards.kill_places import DirectoryKills, MemoryKills, RedisKills

LOOK = (
    "from turnwatch.guards.kill_places import DirectoryKills as D; import sys; "
    "print(D(sys.argv[1]).is_killed(sys.argv[2]))"
)


@pytest.fixture
def directory(tmp_path) -> DirectoryKills:
    return DirectoryKills(tmp_path / "kill")


class RedisServer:
    """A Redis of our own, that listens on a socket in a folder."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._folder = folder

    def start(self) -> None:
        program = shutil.which("redis-server")
        assert program, "redis-server is missing: apt-get install --no-install-recommends redis-server"
        nothing_kept = ["--port", "0", "--save", "", "--unixsocket", str(self.socket), "--dir", str(self._folder)]
        self._process = subprocess.Popen([program, *nothing_kept], stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while True:
            try:
                with contextlib.closing(redis.Redis.from_url(self.url)) as client:
                    client.ping()
                return
            except redis.ConnectionError:
                assert time.monotonic() < until, "redis-server does not answer"
                time.sleep(0.02)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def redis_server(tmp_path_factory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_kills(redis_server) -> Iterator[RedisKills]:
    with contextlib.closing(redis.Redis.from_url(redis_server.url)) as client:
        yield RedisKills(client)


@pytest.fixture
def stores(directory, redis_kills):
    return [MemoryKills(), directory, redis_kills]


def test_a_flag_goes_up_and_down_in_every_store(stores):
    for store in stores:
        assert not store.is_killed("c-1")
        store.kill("c-1")
        assert store.is_killed("c-1")
        assert not store.is_killed("c-2")
        store.kill("c-2")
        if not isinstance(store, MemoryKills):
            assert store.flags() == ["c-1", "c-2"]
        assert store.revive("c-1") is True
        assert store.revive("c-1") is False
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


def test_redis_forgets_a_flag_after_a_day(redis_server, redis_kills):
    redis_kills.kill("c-1")
    with contextlib.closing(redis.Redis.from_url(redis_server.url)) as client:
        (key,) = client.keys()
        assert 0 < client.ttl(key) <= 86_400


def test_a_redis_that_is_busy_for_a_moment_takes_the_flag(redis_server):
    kills = RedisKills.at(redis_server.url)
    with contextlib.closing(redis.Redis.from_url(redis_server.url)) as client:
        client.client_pause(300, all=True)
        kills.kill("c-1")
        assert client.dbsize() == 1


def test_another_process_sees_the_flag_in_redis(redis_server, redis_kills):
    redis_kills.kill("c-1")
    look = (
        "from turnwatch.guards.kill_places import RedisKills; import redis, sys; "
        "print(RedisKills(redis.Redis.from_url(sys.argv[1])).is_killed('c-1'))"
    )
    seen = subprocess.run([sys.executable, "-c", look, redis_server.url], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "True"


def test_a_redis_that_is_down_is_not_asked_again_for_five_seconds(redis_server, redis_kills):
    redis_kills.kill("c-1")
    redis_server.stop()
    with pytest.raises(redis.ConnectionError):
        redis_kills.is_killed("c-2")
    redis_server.start()
    assert not redis_kills.is_killed("c-3")


def test_who_is_known_to_be_killed_stays_killed_while_redis_is_down(redis_server, redis_kills, monkeypatch):
    monkeypatch.setattr("turnwatch.guards.kill_places.REDIS_ASK_AGAIN_SECONDS", 0.0)
    redis_kills.kill("c-1")
    assert redis_kills.is_killed("c-1")
    redis_server.stop()
    assert [redis_kills.is_killed("c-1") for _ in range(2)] == [True, True]
    with pytest.raises(tw.TurnwatchError):
        redis_kills.revive("c-1")
    redis_server.start()


def test_an_agent_goes_on_while_redis_is_down_and_stops_when_it_is_back(redis_server, monkeypatch):
    monkeypatch.setattr("turnwatch.guards.kill_places.REDIS_DOWN_SECONDS", 0.0)
    monkeypatch.setattr("turnwatch.guards.kill_places.REDIS_ASK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("turnwatch.guards.kill_places.REDIS_TIMEOUT_SECONDS", 10.0)
    kills = RedisKills.at(redis_server.url)
    watch = Watch()
    with tw.turn("a", "c-1", watch=watch, kills=kills) as turn:
        redis_server.stop()
        assert turn.call_tool("lookup", lambda: 1) == 1
        assert watch.faults == 1
        redis_server.start()
        kills.kill("c-1")
        with pytest.raises(tw.ConversationKilled):
            turn.call_tool("lookup", pytest.fail)


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


@pytest.mark.parametrize("conversation_id", [17, "\ud800", "c-é", "x" * 300])
def test_a_conversation_is_killed_by_the_id_it_was_given(watch, conversation_id):
    with tw.turn("a", conversation_id, watch=watch) as turn:
        kills_of(watch.settings).kill(conversation_id)
        try:
            with pytest.raises(tw.ConversationKilled):
                turn.begin_tool("search")
        finally:
            kills_of(watch.settings).revive(conversation_id)
        turn.begin_tool("search")


def test_a_turn_without_a_conversation_is_killed_by_its_own_id(watch):
    with tw.turn("a", watch=watch, turn_id="t-1") as turn:
        kills_of(watch.settings).kill("t-1")
        with pytest.raises(tw.ConversationKilled):
            turn.call_tool("lookup", pytest.fail)
        kills_of(watch.settings).revive("t-1")


@pytest.mark.parametrize(("agent", "known_as"), [("a killed agent", "a killed agent"), ("", "unknown")])
def test_a_killed_agent_stops_in_every_conversation_with_the_turns_below_it(make_watch, tmp_path, agent, known_as):
    watch = make_watch(kill_dir=str(tmp_path))
    kills = kills_of(watch.settings)
    kills.kill(flag_of_agent(known_as))
    for conversation in ("c-1", None):
        with tw.turn(agent, conversation, watch=watch) as turn:
            with pytest.raises(tw.ConversationKilled, match="this agent was killed"):
                turn.call_tool("lookup", pytest.fail)
            with tw.turn("its helper", "c-2", watch=watch) as below, pytest.raises(tw.ConversationKilled):
                below.call_tool("lookup", pytest.fail)
    with tw.turn("its helper", "c-2", watch=watch) as turn:
        turn.call_tool("lookup", lambda: 1)
    kills.revive(flag_of_agent(known_as))
    with tw.turn(agent, watch=watch) as turn:
        turn.call_tool("lookup", lambda: 1)


def test_code_and_command_kill_and_revive_an_agent(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWATCH_KILL_DIR", str(tmp_path))
    tw.configure(tw.Settings(kill_dir=str(tmp_path)))
    run = CliRunner().invoke
    result = run(app_for(["kill"]), ["kill", "--agent", "bot"])
    assert result.output.splitlines() == [
        f"flag set for agent bot in {tmp_path}, until --undo",
        "guarded turns of this agent, if there are any, stop at their next model or tool call",
    ]
    assert tw.revive(agent="bot") is True
    tw.kill(agent="bot")
    result = run(app_for(["kill"]), ["kill", "--agent", "bot", "--undo"])
    assert (result.exit_code, result.output) == (0, f"flag taken down for agent bot in {tmp_path}\n")
    assert tw.revive(agent="bot") is True  # in this process
    for wrong in ({}, {"conversation_id": "c-1", "agent": "bot"}):
        with pytest.raises(TypeError):
            tw.kill(**wrong)


def test_a_store_of_the_users_own_is_asked_for_conversations_only(watch):
    asked: list[str] = []

    class Own:
        def is_killed(self, conversation_id: str) -> bool:
            asked.append(conversation_id)
            return False

    with tw.turn("a", "c-1", watch=watch, kills=Own()) as turn:
        turn.call_tool("lookup", lambda: 1)
    assert asked == ["c-1"]


def test_a_store_of_the_users_own_is_asked(watch):
    kills = MemoryKills()
    kills.kill("c-1")
    with tw.turn("a", "c-1", watch=watch, kills=kills) as turn, pytest.raises(tw.ConversationKilled):
        turn.call_tool("lookup", pytest.fail)


def test_the_command_kills_and_revives(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWATCH_KILL_DIR", str(tmp_path))
    run = CliRunner().invoke
    result = run(app_for(["kill"]), ["kill", "c-9"])
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"flag set for c-9 in {tmp_path}, until --undo",
        "guarded turns of this conversation, if there are any, stop at their next model or tool call",
    ]
    assert DirectoryKills(tmp_path).is_killed("c-9")
    result = run(app_for(["kill"]), ["kill", "--undo", "c-9"])
    assert (result.exit_code, result.output.strip()) == (0, f"flag taken down for c-9 in {tmp_path}")
    assert not DirectoryKills(tmp_path).is_killed("c-9")
    result = run(app_for(["kill"]), ["kill", "--undo", "c-9"])
    assert (result.exit_code, result.output.strip()) == (1, f"there was no flag for c-9 in {tmp_path}")


def test_the_command_lists_what_is_killed(tmp_path, monkeypatch, redis_server):
    monkeypatch.setenv("TURNWATCH_KILL_DIR", str(tmp_path))
    run = CliRunner().invoke
    assert run(app_for(["kill"]), ["kill", "--list"]).output == f"no flags in {tmp_path}\n"
    monkeypatch.setenv("TURNWATCH_REDIS_URL", redis_server.url)
    run(app_for(["kill"]), ["kill", "c-9\x1b[2J"])
    where = [str(tmp_path), f"Redis at {redis_server.socket}"]
    assert run(app_for(["kill"]), ["kill", "--list"]).output.splitlines() == [f"c-9�[2J in {place}" for place in where]
    run(app_for(["kill"]), ["kill", "--undo", "c-9\x1b[2J"])
    run(app_for(["kill"]), ["kill", "--agent", "helper"])
    listed = run(app_for(["kill"]), ["kill", "--list"]).output.splitlines()
    assert listed == [f"--agent helper in {place}" for place in where]
    for wrong in (["--list", "c-9"], ["--list", "--undo"], ["--list", "--agent", "a"], ["--agent", "a", "c-9"], []):
        assert run(app_for(["kill"]), ["kill", *wrong]).exit_code != 0


def test_the_command_says_that_a_flag_in_redis_lasts_a_day(tmp_path, monkeypatch, redis_server):
    monkeypatch.setenv("TURNWATCH_KILL_DIR", str(tmp_path))
    monkeypatch.setenv("TURNWATCH_REDIS_URL", redis_server.url)
    result = CliRunner().invoke(app_for(["kill"]), ["kill", "c-9"])
    where = f"Redis at {redis_server.socket}"
    assert f"flag set for c-9 in {where}, for 24 hours or until --undo" in result.output.splitlines()
    assert redis_server.url not in result.output


@pytest.mark.parametrize("undo", [False, True])
def test_the_command_tells_the_other_places_where_redis_is_down(tmp_path, monkeypatch, undo):
    monkeypatch.setenv("TURNWATCH_KILL_DIR", str(tmp_path))
    monkeypatch.setenv("TURNWATCH_REDIS_URL", f"unix://:secret@{tmp_path}/nobody.sock")
    DirectoryKills(tmp_path).kill("c-9")
    result = CliRunner().invoke(app_for(["kill"]), ["kill", *(["--undo"] if undo else []), "c-9"])
    assert result.exit_code == 2
    assert result.stderr == f"turnwatch: Redis at {tmp_path}/nobody.sock does not take the flag: ConnectionError\n"
    assert f"c-9 in {tmp_path}" in result.stdout
    assert DirectoryKills(tmp_path).is_killed("c-9") is not undo


def test_where_a_redis_is_is_told_without_user_and_password():
    assert RedisKills.at("redis://me:secret@cache.example:6380/2").place == "Redis at cache.example:6380"
    assert RedisKills.at("redis://").place == "Redis at localhost:6379"


def test_an_address_of_no_redis_is_a_wrong_setting_that_is_not_shown(monkeypatch):
    with pytest.raises(tw.SettingsError, match="redis_url: wants a URL") as caught:
        kills_of(tw.Settings(redis_url="http://:secret@host"))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_flag_that_cannot_be_taken_down_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(tw.TurnwatchError, match="no flag can be taken out of"):
        DirectoryKills(tmp_path / "file").revive("c-1")


class BrokenKills:
    """A place that cannot be reached."""

    def is_killed(self, conversation_id: str) -> bool:
        raise OSError("not there")

    kill = revive = is_killed


def test_a_place_that_fails_keeps_nobody_from_asking_and_telling_the_others(watch):
    memory = MemoryKills()
    kills = AllKills([BrokenKills(), memory])
    with pytest.raises(OSError, match="not there"):
        kills.is_killed("c-1")
    with pytest.raises(OSError, match="not there"):
        kills.kill("c-1")
    with (
        pytest.raises(tw.ConversationKilled),
        tw.turn("a", "c-1", watch=watch, kills=kills) as turn,
        turn.model_call("m"),
    ):
        pass
    with pytest.raises(OSError, match="not there"):
        kills.revive("c-1")
    assert not memory.is_killed("c-1")


def test_a_kill_store_that_fails_leaves_the_other_guards(watch):
    with tw.turn("a", "c-1", watch=watch, kills=BrokenKills(), limits=tw.Limits(max_tool_calls=1)) as turn:
        turn.call_tool("lookup", lambda: 1)
        with pytest.raises(tw.ToolBudgetExceeded):
            turn.call_tool("lookup", lambda: 1)
    assert watch.value("turnwatch_internal_errors_total") == 2


@pytest.mark.parametrize("above", [{"conversation_id": "c-1"}, {"turn_id": "c-1"}])
def test_the_flag_of_a_turn_stops_the_turns_below_it(watch, above):
    kills = MemoryKills()
    with (
        tw.turn("boss", watch=watch, kills=kills, **above),
        tw.turn("helper", "c-2", watch=watch, kills=kills),
        tw.turn("helper's helper", watch=watch, kills=kills) as turn,
    ):
        turn.call_tool("lookup", lambda: 1)
        kills.kill("c-1")
        with pytest.raises(tw.ConversationKilled):
            turn.call_tool("lookup", pytest.fail)
    with tw.turn("another", "c-2", watch=watch, kills=kills) as turn:
        turn.call_tool("lookup", lambda: 1)

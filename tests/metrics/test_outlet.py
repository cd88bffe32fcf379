"""How a process gets its watch and where its metrics can be scraped."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import subprocess
import sys
import threading
import urllib.request
import weakref
from collections.abc import Iterator
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, generate_latest

import turnwatch as tw
from turnwatch.core.default import set_default_watch
from turnwatch.metrics import outlet


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test starts as a process that has not used turnwatch yet."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    if outlet._outlet is not None:
        outlet._outlet.close()
    outlet._outlet = None
    set_default_watch(None)


def scrape(registry: CollectorRegistry = prometheus_client.REGISTRY) -> str:
    return generate_latest(registry).decode()


def loop(times: int = 3) -> None:
    state = tw.TurnState()
    for _ in range(times):
        state.record("search_orders", "00000000000000aa")
    state.end()


def test_metrics_are_in_the_default_registry_from_the_first_use():
    assert "agent_duplicate_tool_calls" not in scrape()
    loop()
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 1.0' in scrape()


def test_where_the_application_has_a_metric_of_the_same_name_the_first_use_goes_on(caplog: pytest.LogCaptureFixture):
    applications_own = prometheus_client.Counter("agent_turns", "Ours.")
    try:
        loop()
    finally:
        prometheus_client.REGISTRY.unregister(applications_own)
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 1.0' in scrape(tw.metrics_registry())
    assert "turnwatch.metrics_registry() only: Duplicated timeseries" in caplog.text


def test_configuring_again_keeps_what_was_counted_and_changes_the_settings():
    loop()
    tw.configure(tw.Settings(detect={"max_identical_calls": 5}))
    loop(6)
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 2.0' in scrape()


def test_a_registry_of_ones_own():
    registry = CollectorRegistry()
    tw.configure(registry=registry)
    loop()
    assert "agent_duplicate_tool_calls_total{" in scrape(registry)
    assert "agent_duplicate_tool_calls_total{" not in scrape()
    assert tw.metrics_registry() is registry


def test_another_view_keeps_the_settings_in_force():
    tw.configure(tw.Settings(on_loop="stop"))
    outlet.show_through("otel")
    loop()
    assert tw.default_watch().settings.on_loop == "stop"
    assert "agent_turns_total{" not in scrape()
    outlet.show_through("prometheus")
    loop()
    assert tw.default_watch().settings.on_loop == "stop"
    assert 'agent_turns_total{agent="unknown",stop_reason="final_answer"} 1.0' in scrape()


def test_a_view_that_is_shown_already_keeps_its_registry():
    registry = CollectorRegistry()
    tw.configure(registry=registry)
    outlet.show_through("prometheus")
    loop()
    assert "agent_turns_total{" in scrape(registry)


def test_another_registry_takes_the_metrics_off_the_first():
    first, second = CollectorRegistry(), CollectorRegistry()
    tw.configure(registry=first)
    tw.configure(registry=second)
    loop()
    assert (scrape(first), "agent_turns_total{" in scrape(second)) == ("", True)


def test_a_registry_that_somebody_has_emptied_gets_the_metrics_back():
    registry = CollectorRegistry()
    tw.configure(registry=registry)
    loop()
    for collector in list(registry._collector_to_names):
        registry.unregister(collector)
    assert "agent_" not in scrape(registry)

    tw.configure(registry=registry)
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 1.0' in scrape(registry)


def test_another_registry_can_be_used_when_somebody_has_emptied_the_first():
    first, second = CollectorRegistry(), CollectorRegistry()
    tw.configure(registry=first)
    for collector in list(first._collector_to_names):
        first.unregister(collector)

    tw.configure(registry=second)
    loop()
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 1.0' in scrape(second)


def test_metrics_can_be_served_on_a_port():
    server, thread = tw.start_metrics_server(port=0)
    try:
        loop()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as reply:
            assert b"agent_duplicate_tool_calls_total{" in reply.read()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_port_that_is_taken_is_named():
    server, thread = tw.start_metrics_server(port=0)
    try:
        with pytest.raises(OSError, match=f"cannot serve metrics on 127.0.0.1:{server.server_port}: "):
            tw.start_metrics_server(port=server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_metrics_mount_into_wsgi_and_asgi_apps():
    loop()
    status: list[str] = []
    body = b"".join(
        tw.metrics_wsgi_app()(
            {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "QUERY_STRING": ""},
            lambda line, headers: status.append(line),
        )
    )
    assert (status, b"agent_turns_total{" in body) == (["200 OK"], True)
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    asyncio.run(tw.metrics_asgi_app()(scope, receive, send))
    assert sent[0]["status"] == 200
    assert b"agent_turns_total{" in bytes(sent[1]["body"])


def test_a_broken_configuration_does_not_break_the_agent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    config = tmp_path / "turnwatch.yaml"
    config.write_text("detect: {max_identical_cals: 3}\n")
    monkeypatch.setenv("TURNWATCH_CONFIG", str(config))
    with caplog.at_level(logging.WARNING, logger="turnwatch"):
        loop()
    assert "agent_duplicate_tool_calls_total{" in scrape()
    assert "turnwatch_internal_errors_total 1.0" in scrape()
    assert "max_identical_cals" in caplog.text
    with pytest.raises(tw.SettingsError, match="max_identical_cals"):
        tw.configure()


def test_what_is_right_in_the_settings_holds_and_what_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    config = tmp_path / "turnwatch.yaml"
    config.write_text("budgets: {max_tool_calls: 2}\ntools: {overrides: {get_job: {pooling: true}}}\n")
    monkeypatch.setenv("TURNWATCH_CONFIG", str(config))
    monkeypatch.setenv("TURNWATCH_DETECT__MAX_IDENTICAL_CALL", "1")
    with caplog.at_level(logging.ERROR, logger="turnwatch"), tw.turn("bot") as turn:
        turn.call_tool("f", str, 1)
        turn.call_tool("f", str, 2)
        with pytest.raises(tw.ToolBudgetExceeded):
            turn.call_tool("f", str, 3)
    (line,) = caplog.messages
    assert f"{config}, line 2: tools.overrides.get_job.pooling: unknown key; allowed are " in line
    assert "did you mean polling?" in line
    assert "TURNWATCH_DETECT__MAX_IDENTICAL_CALL is not a setting" in line
    assert "turnwatch_settings_faults 2.0" in scrape()
    monkeypatch.delenv("TURNWATCH_DETECT__MAX_IDENTICAL_CALL")
    config.write_text("budgets: {max_tool_calls: 2}\n")
    tw.configure()
    assert "turnwatch_settings_faults 0.0" in scrape()


@pytest.mark.parametrize("fault", ["budgets: {max_usd: much}", "prices_file: /missing/prices.yaml"])
def test_no_turn_begins_under_wrong_settings_that_say_fail_closed(
    fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    config = tmp_path / "turnwatch.yaml"
    config.write_text(f"fail_closed: true\n{fault}\n")
    monkeypatch.setenv("TURNWATCH_CONFIG", str(config))
    for _ in range(2):
        with pytest.raises(tw.TurnStopped, match=fault.split(":")[0]) as stopped, tw.turn("careful"):
            pass
        assert stopped.value.stop_reason == "error"
    with tw.turn("careless", fail_closed=False) as turn:
        turn.call_tool("f", int)
    assert 'agent_turns_total{agent="careless",stop_reason="final_answer"} 1.0' in scrape()


@pytest.mark.parametrize(
    "content", [b"budgets: [", b"- a list", b"\xff\xfe", None], ids=["cut", "list", "bytes", "none"]
)
def test_no_turn_begins_under_a_file_that_cannot_be_read_where_the_environment_says_fail_closed(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    config = tmp_path / "turnwatch.yaml"
    if content is not None:
        config.write_bytes(content)
    monkeypatch.setenv("TURNWATCH_CONFIG", str(config))
    monkeypatch.setenv("TURNWATCH_FAIL_CLOSED", "true")
    with pytest.raises(tw.TurnStopped, match=re.escape(str(config))) as stopped, tw.turn("careful"):
        pass
    assert stopped.value.stop_reason == "error"


def test_a_broken_price_file_does_not_break_the_agent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("TURNWATCH_PRICES_FILE", "/missing/prices.yaml")
    monkeypatch.setenv("TURNWATCH_DETECT__MAX_IDENTICAL_CALLS", "1")
    with caplog.at_level(logging.WARNING, logger="turnwatch"):
        loop()
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 2.0' in scrape()
    assert "/missing/prices.yaml" in caplog.text
    with pytest.raises(tw.SettingsError, match=r"prices\.yaml"):
        tw.configure()


def test_a_metric_of_the_same_name_in_the_application_does_not_break_the_agent(caplog: pytest.LogCaptureFixture):
    theirs = prometheus_client.Counter("agent_duplicate_tool_calls", "The application's own.")
    try:
        with caplog.at_level(logging.WARNING, logger="turnwatch"):
            loop()
    finally:
        prometheus_client.REGISTRY.unregister(theirs)
    assert "agent_turns_total{" not in scrape()
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 1.0' in scrape(tw.metrics_registry())
    assert "agent_duplicate_tool_calls" in caplog.text


@pytest.mark.parametrize("configured", [False, True])
def test_a_process_logs_the_verdicts_of_its_turns(configured: bool, caplog: pytest.LogCaptureFixture):
    if configured:
        tw.configure()
    with caplog.at_level(logging.INFO, logger="turnwatch"):
        loop(8)
    assert "verdict=warn kind=repeat agent=unknown tool=search_orders turn=" in caplog.text


def test_an_unknown_view_is_refused():
    with pytest.raises(tw.TurnwatchError, match="prometheus"):
        tw.configure(metrics="statsd")


def test_opentelemetry_is_optional():
    """In a process where OpenTelemetry cannot be imported everything but its view works."""
    code = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "import turnwatch as tw\n"
        "with tw.turn(agent='bot') as turn: turn.call_tool('f', lambda: 1)\n"
        "try: tw.configure(metrics='otel')\n"
        "except tw.MissingExtraError as error: print(error, turn.tool_calls)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "turnwatch[otel]" in run.stdout
    assert run.stdout.rstrip().endswith("1")


def test_a_registry_that_refuses_the_metrics_leaves_the_old_one_in_use():
    registry, taken = CollectorRegistry(), CollectorRegistry()
    tw.configure(registry=registry)
    prometheus_client.Counter("agent_turns", "Somebody else's.", registry=taken)
    with pytest.raises(ValueError, match="Duplicated"):
        tw.configure(registry=taken)
    loop()
    assert 'agent_duplicate_tool_calls_total{agent="unknown",tool="search_orders"} 1.0' in scrape(registry)


def test_a_turn_that_is_open_while_it_is_configured_again_stays_in_the_gauges_until_it_has_ended():
    open_turns, identical = 'agent_open_turns{agent="shop"}', 'agent_turn_identical_calls_max{agent="shop",tool="find"}'
    with tw.turn("shop") as before:
        for _ in range(4):
            before.state.record("find", "00000000000000aa")
        tw.configure(tw.Settings(detect={"max_identical_calls": 5}))
        assert f"{open_turns} 1.0" in scrape()
        assert f"{identical} 4.0" in scrape()
        with tw.turn("shop") as after:
            assert after.state.parent is before.state
            after.state.record("find", "00000000000000aa")
            assert f"{open_turns} 2.0" in scrape()
        before.state.record("find", "00000000000000aa")
        assert f"{identical} 5.0" in scrape()
    assert f"{open_turns} 0.0" in scrape()
    assert 'agent_duplicate_tool_calls_total{agent="shop",tool="find"} 3.0' in scrape()


def test_configuring_again_and_again_beside_an_open_turn_is_no_problem():
    registry = CollectorRegistry()
    tw.configure(registry=registry)
    with tw.turn(agent="support-bot"):
        for _ in range(sys.getrecursionlimit() // 2):
            tw.configure(registry=registry)
        assert 'agent_open_turns{agent="support-bot"} 1.0' in scrape(registry)
    assert 'agent_open_turns{agent="support-bot"}' not in scrape(registry)


def test_a_scrape_waits_for_a_turn_that_began_before_it_was_configured_again():
    many = tw.Settings(bounds={"tools": 10_000})
    tw.configure(many)
    before = tw.TurnState("shop")
    tw.configure(many)

    def record() -> None:
        for number in range(1_500):
            before.record(f"tool-{number}", "00000000000000aa")

    recording = threading.Thread(target=record)
    recording.start()
    while recording.is_alive():
        scrape()  # which fails where a series is added meanwhile
    recording.join()
    assert 'agent_tool_calls_total{agent="shop",outcome="ok",tool="tool-1499"} 1.0' in scrape()


def test_a_conversation_goes_on_when_it_is_configured_again():
    limits = tw.Limits(max_tool_calls=3)
    for _ in range(3):
        tw.configure(tw.Settings())
        with tw.turn("shop", conversation_id="c", conversation_limits=limits) as turn:
            turn.call_tool("find", str)
    tw.configure(tw.Settings())
    with pytest.raises(tw.ToolBudgetExceeded), tw.turn("shop", conversation_id="c") as turn:
        turn.call_tool("find", str)


def test_a_watch_that_had_nothing_to_show_is_not_kept():
    first = tw.configure()
    tw.TurnState("shop", conversation_id="c").end()
    second = tw.configure(tw.Settings(detect={"max_identical_calls": 5}))
    kept = weakref.ref(first)
    del first
    gc.collect()

    assert kept() is None
    assert tw.default_watch() is second

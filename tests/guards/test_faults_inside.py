"""A fault anywhere inside turnwatch costs the agent its guard and nothing else; with fail_closed it stops instead."""

from __future__ import annotations

import pytest

import turnwatch as tw
from turnwatch.core.account import Account
from turnwatch.guards.gateway_call import GatewayCall
from turnwatch.guards.kill_places import MemoryKills
from turnwatch.guards.turn_guard import TurnGuard
from turnwatch.settings import Bounds, Page


def broken(*_: object, **__: object) -> None:
    raise RuntimeError("a fault inside turnwatch")


class BrokenKills(MemoryKills.__mro__[1]):
    is_killed = broken


def set_clock_back(watch, monkeypatch, guarding, clock):
    clock.now -= 500


def break_clock(watch, monkeypatch, guarding, clock):
    monkeypatch.setattr(type(clock), "__call__", broken)


def break_meter(watch, monkeypatch, guarding, clock):
    monkeypatch.setattr(watch.meter, "counter", broken)
    monkeypatch.setattr(watch.meter, "histogram", broken)


def break_prices(watch, monkeypatch, guarding, clock):
    monkeypatch.setattr(watch.prices, "cost", broken)


def break_engine(watch, monkeypatch, guarding, clock):
    monkeypatch.setattr("turnwatch.core.engine.Engine.observe", broken)


def break_counting(watch, monkeypatch, guarding, clock):
    monkeypatch.setattr(watch, "tool_series", broken)


def break_accounts(watch, monkeypatch, guarding, clock):
    for name in ("reserve", "admit_tool", "warnings"):
        monkeypatch.setattr(Account, name, broken)


def break_kills(watch, monkeypatch, guarding, clock):
    guarding["kills"] = BrokenKills()


def break_warning_callback(watch, monkeypatch, guarding, clock):
    guarding["on_warning"] = broken
    guarding["limits"] = tw.Limits(max_tool_calls=4, max_usd=10)


FAULTS = [
    set_clock_back,
    break_clock,
    break_meter,
    break_prices,
    break_engine,
    break_counting,
    break_accounts,
    break_kills,
    break_warning_callback,
]


def run_agent(turn: tw.Turn, gateway: tw.ToolGateway) -> list[object]:
    results: list[object] = []
    for number in range(3):
        with turn.model_call("claude-sonnet-4-5", reserve=0.01) as call:
            call.usage(input_tokens=10, output_tokens=10)
        results.append(gateway.call("lookup", {"number": number}))
    return results


@pytest.mark.parametrize("fault", FAULTS)
def test_the_agent_goes_on_and_the_fault_is_counted(watch, monkeypatch, clock, fault):
    gateway = tw.ToolGateway(impls={"lookup": lambda number: number * 2}, watch=watch)
    guarding: dict[str, object] = {"limits": tw.Limits(max_usd=10, max_tool_calls=100)}
    with tw.turn("a", watch=watch, **guarding) as turn:
        pass
    if fault in (break_kills, break_warning_callback):
        fault(watch, monkeypatch, guarding, clock)
    with tw.turn("a", watch=watch, **guarding) as turn:
        if fault not in (break_kills, break_warning_callback):
            fault(watch, monkeypatch, guarding, clock)
        assert run_agent(turn, gateway) == [0, 2, 4]
    assert watch.faults > 0
    if fault is not break_meter:
        assert watch.value("turnwatch_internal_errors_total") == watch.faults


@pytest.mark.parametrize("fault", FAULTS)
def test_with_fail_closed_the_turn_stops_instead(watch, monkeypatch, clock, fault):
    gateway = tw.ToolGateway(impls={"lookup": lambda number: number * 2}, watch=watch)
    guarding: dict[str, object] = {"limits": tw.Limits(max_usd=10, max_tool_calls=100), "fail_closed": True}
    if fault in (break_kills, break_warning_callback):
        fault(watch, monkeypatch, guarding, clock)
    with tw.turn("a", watch=watch, **guarding) as turn:
        if fault not in (break_kills, break_warning_callback):
            fault(watch, monkeypatch, guarding, clock)
        with pytest.raises(tw.TurnStopped, match="fail_closed") as stopped:
            run_agent(turn, gateway)
    assert stopped.value.stop_reason == turn.stop_reason == "error"


def test_without_a_fault_fail_closed_stops_nothing(watch):
    gateway = tw.ToolGateway(impls={"lookup": lambda number: number * 2}, watch=watch)
    with tw.turn("a", watch=watch, fail_closed=True) as turn:
        assert run_agent(turn, gateway) == [0, 2, 4]
    assert watch.faults == 0


def test_an_alertmanager_that_is_down_changes_nothing_and_is_counted(watch):
    pager = tw.Pager(tw.alertmanager("http://127.0.0.1:9"), on_fault=watch.internal_error)
    with tw.turn("a", watch=watch, on_loop="page", pager=pager) as turn:
        for _ in range(6):
            turn.call_tool("search", lambda: "nothing new")
    assert pager.flush(30)
    assert watch.value("turnwatch_internal_errors_total") == 1


def test_a_guard_that_cannot_be_made_leaves_the_turn_unguarded_or_stops_it(watch, monkeypatch):
    monkeypatch.setattr(TurnGuard, "__init__", broken)
    with tw.turn("a", watch=watch) as turn:
        assert turn.call_tool("lookup", lambda: 1) == 1
    assert watch.faults == 1
    with pytest.raises(tw.TurnStopped, match="fail_closed"), tw.turn("a", watch=watch, fail_closed=True):
        pass


@pytest.mark.parametrize(
    "place",
    [
        "may_change_something",
        "exact_key",
        "Kept.of",
        "KeptResults.get",
        "KeptResults.keep",
        "KeptResults.something_changes",
        "Flights.board",
        "Flights.land",
        "Holds.holds",
        "Holds.release",
        "CircuitBreaker.admits",
        "CircuitBreaker.worked",
        "Scratchpad.add",
    ],
)
def test_a_broken_step_of_the_gateway_is_left_out(watch, monkeypatch, place):
    monkeypatch.setattr(f"turnwatch.guards.gateway_call.{place}", broken)
    gateway = tw.ToolGateway(impls={"lookup": lambda number: number * 2, "update": lambda: "ok"}, watch=watch)
    assert [gateway.call("lookup", {"number": number}) for number in (1, 2, 2)] == [2, 4, 4]
    assert gateway.call("update") == "ok"
    assert watch.faults > 0


def test_a_retry_policy_that_breaks_lets_the_tools_exception_through(watch, monkeypatch):
    monkeypatch.setattr(GatewayCall, "_wait", broken)
    gateway = tw.ToolGateway(impls={"read": lambda: (_ for _ in ()).throw(TimeoutError("slow"))}, watch=watch)
    with pytest.raises(TimeoutError, match="slow"):
        gateway.call("read")
    assert watch.faults == 1


@pytest.mark.parametrize(
    "settings",
    [{"redis_url": "localhost:6379"}, {"page": Page(webhook_url="http://127.0.0.1:9/hook")}],
    ids=["kill store", "pager"],
)
def test_a_part_of_the_guard_that_cannot_be_made_leaves_the_others(make_watch, monkeypatch, settings):
    monkeypatch.setattr("turnwatch.guards.from_settings.webhook", broken)
    watch = make_watch(**settings)
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tool_calls=1)) as turn:
        turn.call_tool("lookup", lambda: 1)
        with pytest.raises(tw.ToolBudgetExceeded):
            turn.call_tool("lookup", lambda: 1)
    assert watch.value("turnwatch_internal_errors_total") == 1
    with pytest.raises(tw.TurnStopped, match="fail_closed"), tw.turn("a", watch=watch, fail_closed=True) as turn:
        turn.call_tool("lookup", pytest.fail)


@pytest.mark.parametrize("conversation_id", [None, "c-1"])
def test_a_metrics_backend_that_never_worked_leaves_the_turn_its_limits(make_watch, monkeypatch, conversation_id):
    watch = make_watch(bounds=Bounds(open_turns=1, conversations=1))
    for name in ("counter", "histogram"):
        monkeypatch.setattr(watch.meter, name, broken)
    gateway = tw.ToolGateway(impls={"lookup": lambda number: number * 2}, watch=watch)
    limits = tw.Limits(max_tool_calls=3, max_iterations=3)
    with (
        tw.turn("a", "c-0", watch=watch),
        tw.turn("a", conversation_id, watch=watch, limits=limits, on_loop="stop") as turn,
    ):
        assert run_agent(turn, gateway) == [0, 2, 4]
        with pytest.raises(tw.ToolBudgetExceeded):
            gateway.call("lookup", {"number": 4})
        with pytest.raises(tw.StepLimitExceeded), turn.model_call("m"):
            pass
    assert turn.stop_reason == "max_tool_calls"
    assert watch.faults > 0


@pytest.mark.parametrize(
    "place", ["conversation.Conversations.touch", "engine.Engine.begin_turn", "watch.Watch.opened"]
)
def test_a_turn_that_cannot_be_opened_whole_runs_and_keeps_its_limits(watch, monkeypatch, place):
    monkeypatch.setattr(f"turnwatch.core.{place}", broken)
    with tw.turn("a", "c-1", watch=watch, limits=tw.Limits(max_tool_calls=1)) as turn:
        assert turn.call_tool("lookup", lambda: 1) == 1
        with pytest.raises(tw.ToolBudgetExceeded):
            turn.call_tool("lookup", pytest.fail)
    assert watch.faults == watch.value("turnwatch_internal_errors_total") == 1
    assert watch.value("agent_turns_total", "a", "max_tool_calls") == 1


def test_with_fail_closed_a_turn_does_not_run_outside_its_conversation(watch, monkeypatch):
    monkeypatch.setattr("turnwatch.core.conversation.Conversations.touch", broken)
    with pytest.raises(tw.TurnStopped, match="fail_closed"), tw.turn("a", "c-1", watch=watch, fail_closed=True):
        pass


def test_a_negative_reservation_holds_back_nothing_and_gives_nothing(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tokens=100, max_usd=1)) as turn:
        for reserve in (tw.Usage(-1_000, 0), -5.0):
            turn.model_call("m", reserve=reserve).__enter__()
        with pytest.raises(tw.BudgetExceeded), turn.model_call("m", reserve=tw.Usage(101, 0)):
            pass
        with pytest.raises(tw.BudgetExceeded), turn.model_call("m", reserve=1.1):
            pass

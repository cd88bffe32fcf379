from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from openai import OpenAI

import turnwatch as tw
from turnwatch.guards.frameworks.reported import TurnOpener
from turnwatch.guards.turn_guard import TurnGuard
from turnwatch.settings import AgentOverride, Budgets, ToolOverride, Tools


def look_up(turn: tw.Turn, times: int) -> None:
    for number in range(times):
        turn.call_tool("lookup", lambda number: f"row {number}", number)


def test_the_65th_tool_call_under_a_cap_of_64_is_refused_and_counted_as_denied(watch):
    limits = tw.Limits(max_tool_calls=64)
    with pytest.raises(tw.ToolBudgetExceeded) as stopped, tw.turn("a", watch=watch, limits=limits) as turn:
        look_up(turn, 100)
    assert stopped.value.stop_reason == turn.stop_reason == "max_tool_calls"
    assert turn.tool_calls == 65
    assert watch.value("agent_tool_calls_total", "a", "lookup", "denied") == 1
    assert watch.value("agent_guard_stops_total", "a", "max_tool_calls") == 1
    assert watch.value("agent_turns_total", "a", "max_tool_calls") == 1


@pytest.mark.parametrize("name", ["limits", "conversation_limits"])
def test_limits_of_another_type_are_refused_when_the_turn_is_opened(watch, name: str):
    with pytest.raises(TypeError, match=f"{name} wants a turnwatch.Limits, .* not dict"):
        tw.turn("a", "c", watch=watch, **{name: {"max_usd": 1.0}}).__enter__()
    with pytest.raises(TypeError, match=f"{name} wants a turnwatch.Limits, .* not dict"):
        tw.ToolGateway({}, watch=watch, **{name: {"max_usd": 1.0}})
    assert watch.value("turnwatch_internal_errors_total") == 0


GUARDED = {
    "turn": lambda watch, **guarding: tw.turn("a", watch=watch, **guarding),
    "decorated turn": lambda watch, **guarding: tw.watch_turn(**guarding),
    "gateway": lambda watch, **guarding: tw.ToolGateway({}, watch=watch, **guarding),
    "hooks of a framework": lambda watch, **guarding: TurnOpener("a", None, watch, guarding),
    "client": lambda watch, **guarding: tw.wrap(OpenAI(api_key="none"), watch=watch, **guarding),
}


@pytest.mark.parametrize("wrong", [{"max_tool_calls": 2.5}, {"max_tokens": 0.5}, {"max_iterations": 1.1}])
def test_calls_and_tokens_are_limited_in_whole_numbers(wrong):
    with pytest.raises(ValueError, match="must be a whole number"):
        tw.Limits(**wrong)
    assert tw.Limits(max_tokens=2e5, max_seconds=0.5).max_tokens == 200_000


@pytest.mark.parametrize("guarded", GUARDED.values(), ids=GUARDED.keys())
def test_a_misspelt_limit_is_refused_where_it_stands(watch, guarded):
    with pytest.raises(TypeError, match="keyword argument 'limit'; did you mean limits"):
        guarded(watch, limit=tw.Limits(max_tool_calls=1))
    with pytest.raises(TypeError, match="keyword argument 'xxx'; there are conversation_limits, fail_closed, "):
        guarded(watch, xxx=1)


@pytest.mark.parametrize("guarded", [GUARDED[name] for name in ("gateway", "hooks of a framework", "client")])
def test_a_response_that_is_none_is_refused_before_there_is_a_turn(watch, guarded):
    with pytest.raises(ValueError, match="on_loop is one of nudge, observe, page, stop"):
        guarded(watch, on_loop="explode")


def test_a_refused_model_call_is_no_iteration(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_iterations=2)) as turn:
        for _ in range(2):
            with turn.model_call("m"):
                pass
        with pytest.raises(tw.StepLimitExceeded), turn.model_call("m"):
            pytest.fail("the call must not start")
    assert turn.iterations == 2
    assert turn.stop_reason == "max_iterations"


def test_failed_calls_use_up_the_limits_too(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_iterations=1, max_tool_calls=1)) as turn:
        with pytest.raises(OSError, match="x"), turn.model_call("m"):
            raise OSError("x")
        with pytest.raises(tw.StepLimitExceeded), turn.model_call("m"):
            pass
        with pytest.raises(ZeroDivisionError):
            turn.call_tool("divide", lambda: 1 / 0)
        with pytest.raises(tw.ToolBudgetExceeded):
            turn.call_tool("divide", lambda: 1)


def test_the_time_limit_refuses_the_next_call(watch, clock):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_seconds=60)) as turn:
        turn.call_tool("lookup", lambda: 1)
        clock.now += 60
        with pytest.raises(tw.TimeLimitExceeded) as stopped:
            turn.call_tool("lookup", lambda: 2)
    assert stopped.value.stop_reason == "max_seconds"


def test_tokens_and_dollars_stop_the_next_model_call(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tokens=1_000)) as turn:
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=900, output_tokens=200)
        with pytest.raises(tw.BudgetExceeded) as stopped, turn.model_call("claude-sonnet-4-5"):
            pass
        assert stopped.value.stop_reason == "max_turn_tokens"
    with tw.turn("a", watch=watch, limits=tw.Limits(max_usd=0.01)) as turn:
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=1_000, output_tokens=1_000)
        with pytest.raises(tw.BudgetExceeded) as stopped, turn.model_call("claude-sonnet-4-5"):
            pass
        assert stopped.value.stop_reason == "max_usd"
    assert turn.spend_usd == pytest.approx(0.018)


def test_of_five_parallel_forty_cent_calls_on_a_dollar_at_most_two_start(watch):
    started, refused = [], []
    gate = threading.Barrier(5)
    with tw.turn("a", watch=watch, limits=tw.Limits(max_usd=1.0)) as turn:

        def work() -> None:
            gate.wait()
            try:
                with turn.model_call("claude-sonnet-4-5", reserve=0.40) as call:
                    started.append(1)
                    call.usage(input_tokens=1, output_tokens=1, spend_usd=0.40)
            except tw.BudgetExceeded:
                refused.append(1)

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(started), len(refused)) == (2, 3)
    assert turn.spend_usd == pytest.approx(0.80)


async def test_parallel_coroutines_reserve_by_the_tokens_they_may_use(watch):
    started = []
    most = tw.Usage(input=100_000, output=20_000)  # 0.60 dollars

    async def work(turn: tw.Turn) -> None:
        with turn.model_call("claude-sonnet-4-5", reserve=most) as call:
            started.append(1)
            await asyncio.sleep(0)
            call.usage(input_tokens=100, output_tokens=20)

    async with tw.turn("a", watch=watch, limits=tw.Limits(max_usd=1.0)) as turn:
        outcomes = await asyncio.gather(*(work(turn) for _ in range(5)), return_exceptions=True)
        assert len(started) == 1
        assert sum(isinstance(outcome, tw.BudgetExceeded) for outcome in outcomes) == 4
        await work(turn)


def test_a_call_that_says_no_usage_is_charged_what_it_reserved(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_usd=1.0)) as turn:
        with turn.model_call("claude-sonnet-4-5", reserve=0.7):
            pass
        with pytest.raises(tw.BudgetExceeded), turn.model_call("claude-sonnet-4-5", reserve=0.7):
            pass


def test_a_failed_call_gives_back_what_it_reserved(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_usd=1.0)) as turn:
        for _ in range(5):
            with pytest.raises(OSError, match="down"), turn.model_call("claude-sonnet-4-5", reserve=0.7):
                raise OSError("down")


@pytest.mark.parametrize("reserve", [None, 0.10, tw.Usage(10, 10)])
def test_an_unpriced_model_does_not_start_under_the_policy_block(watch, reserve):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_usd=1.0, unpriced="block")) as turn:
        for _ in range(5):
            with pytest.raises(tw.BudgetExceeded), turn.model_call("nobodys-model", reserve=reserve):
                pytest.fail("the call must not start")
        with turn.model_call("claude-sonnet-4-5"):
            pass
    assert turn.iterations == 1


def test_an_unpriced_model_is_counted_at_the_assumed_price(watch):
    limits = tw.Limits(max_usd=1.0, unpriced=tw.AssumedPrice(input_usd=100, output_usd=500))
    with tw.turn("a", watch=watch, limits=limits) as turn:
        with turn.model_call("nobodys-model") as call:
            call.usage(input_tokens=5_000, output_tokens=1_000)
        with pytest.raises(tw.BudgetExceeded), turn.model_call("nobodys-model"):
            pass


def test_an_unpriced_model_runs_and_is_counted_under_the_policy_allow(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_usd=0.000001)) as turn:
        for _ in range(3):
            with turn.model_call("nobodys-model") as call:
                call.usage(input_tokens=5_000, output_tokens=1_000)
    assert watch.value("agent_unpriced_model_calls_total", "nobodys-model") == 3


def test_a_child_pays_from_its_parents_budget(watch):
    with tw.turn("boss", watch=watch, limits=tw.Limits(max_tool_calls=3, max_usd=0.02)) as boss:
        boss.call_tool("lookup", lambda: 1)
        with tw.turn("helper", watch=watch) as helper:
            helper.call_tool("lookup", lambda: 2)
            with helper.model_call("claude-sonnet-4-5") as call:
                call.usage(input_tokens=1_000, output_tokens=1_200)
            helper.call_tool("lookup", lambda: 3)
            with pytest.raises(tw.ToolBudgetExceeded):
                helper.call_tool("lookup", lambda: 4)
        with pytest.raises(tw.BudgetExceeded), boss.model_call("claude-sonnet-4-5"):
            pass


def test_a_conversations_limits_hold_over_its_turns(watch):
    limits = tw.Limits(max_tool_calls=3)
    for _ in range(3):
        with tw.turn("a", "c-1", watch=watch, conversation_limits=limits) as turn:
            turn.call_tool("lookup", lambda: 1)
    with pytest.raises(tw.ToolBudgetExceeded, match="conversation"), tw.turn("a", "c-1", watch=watch) as turn:
        turn.call_tool("lookup", lambda: 1)
    with tw.turn("a", "c-2", watch=watch, conversation_limits=limits) as turn:
        turn.call_tool("lookup", lambda: 1)


def test_warnings_come_as_callback_and_as_metric(watch):
    warnings: list[tw.BudgetWarning] = []
    limits = tw.Limits(max_tool_calls=10, max_iterations=4)
    with tw.turn("a", "c", watch=watch, limits=limits, on_warning=warnings.append) as turn:
        look_up(turn, 10)
    assert [(warning.limit, warning.percent) for warning in warnings] == [("max_tool_calls", n) for n in (50, 80, 100)]
    assert (warnings[0].used, warnings[0].allowed, warnings[0].agent, warnings[0].conversation_id) == (5, 10, "a", "c")
    assert watch.value("agent_budget_warnings_total", "a", "max_tool_calls") == 3


def test_the_exception_carries_what_was_done_so_far(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tool_calls=2)) as turn:
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=1_000, output_tokens=1_000)
        with pytest.raises(tw.ToolBudgetExceeded) as stopped:
            look_up(turn, 5)
    partial = stopped.value.partial
    assert isinstance(partial, tw.PartialResults)
    assert partial.results == (("lookup", "row 0"), ("lookup", "row 1"))
    assert (partial.iterations, partial.tool_calls, partial.tokens) == (1, 3, 2_000)
    assert "row" not in repr(partial)
    assert stopped.value.to_dict() == {
        "error": "ToolBudgetExceeded",
        "stop_reason": "max_tool_calls",
        "message": str(stopped.value),
        "limit": "max_tool_calls",
        "scope": "turn",
        "used": 2,
        "allowed": 2,
    }


def test_the_agents_own_partial_answer_goes_first(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tool_calls=1)) as turn:
        turn.partial = "so far"
        with pytest.raises(tw.ToolBudgetExceeded) as stopped:
            look_up(turn, 2)
    assert stopped.value.partial == "so far"


def test_the_settings_budgets_guard_every_turn(make_watch):
    watch = make_watch(
        budgets=Budgets(max_steps=5, max_tool_calls=2),
        agents={"coder": AgentOverride(budgets=Budgets(max_tool_calls=4))},
        tools=Tools(overrides={"send": ToolOverride(max_calls=1)}),
    )
    for agent, allowed in (("a", 2), ("coder", 4)):
        with tw.turn(agent, watch=watch) as turn:
            for number in range(allowed):
                turn.call_tool("lookup", lambda number: number, number)
            with pytest.raises(tw.ToolBudgetExceeded):
                turn.call_tool("lookup", lambda: 1)
            assert turn.state.guard.account.limits.max_iterations == 5
    with tw.turn("a", watch=watch) as turn:
        turn.call_tool("send", lambda: 1)
        with pytest.raises(tw.ToolBudgetExceeded, match="send"):
            turn.call_tool("send", lambda: 2)


def test_the_settings_say_what_a_dollar_limit_does_about_a_model_without_a_price(make_watch):
    watch = make_watch(
        budgets=Budgets(max_usd=1.0, unpriced="block"),
        agents={"lab": AgentOverride(budgets=Budgets(unpriced="allow"))},
    )
    with tw.turn("a", watch=watch) as turn, pytest.raises(tw.BudgetExceeded), turn.model_call("nobodys-model"):
        pass
    with tw.turn("lab", watch=watch) as turn, turn.model_call("nobodys-model"):
        pass
    assert turn.iterations == 1


def test_the_turn_given_limits_needs_no_settings(make_watch):
    watch = make_watch(budgets=Budgets(max_tool_calls=1))
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tool_calls=2)) as turn:
        turn.call_tool("lookup", lambda: 1)
        turn.call_tool("lookup", lambda: 1)


def test_a_decorated_turn_is_guarded(watch):
    tw.default_watch()

    @tw.watch_turn(agent="a", limits=tw.Limits(max_tool_calls=1))
    def run() -> None:
        for _ in range(2):
            tw.current_turn().call_tool("lookup", lambda: 1)

    with pytest.raises(tw.ToolBudgetExceeded):
        run()


def test_what_a_call_held_back_that_nobody_ended_is_free_again_when_its_turn_is_over(watch):
    limits = tw.Limits(max_usd=1.0)
    abandoned = tw.turn("a", "c-1", watch=watch, conversation_limits=limits).open()
    call = abandoned.model_call("claude-sonnet-4-5", reserve=0.9)
    call.__enter__()
    with tw.turn("a", "c-1", watch=watch) as turn, pytest.raises(tw.BudgetExceeded):
        turn.model_call("claude-sonnet-4-5", reserve=0.5).__enter__()
    abandoned.close("user_cancelled")
    with tw.turn("a", "c-1", watch=watch) as turn, turn.model_call("claude-sonnet-4-5", reserve=0.5) as other:
        other.usage(spend_usd=0.5)
    call.__exit__(None, None, None)  # it did end, late, without a word on its usage
    assert turn.state.conversation.account.usd == pytest.approx(1.4)


def test_a_gateways_limits_hold_for_the_very_first_calls_side_by_side(watch, monkeypatch):
    tighten = TurnGuard.tighten
    first = threading.Event()

    def slowly(*args: object) -> None:
        first.wait(0.2)
        tighten(*args)

    monkeypatch.setattr(TurnGuard, "tighten", slowly)
    ran: list[int] = []
    gateway = tw.ToolGateway(
        {"get": lambda number: ran.append(number)}, watch=watch, limits=tw.Limits(max_tool_calls=3)
    )

    def call(number: int) -> None:
        with contextlib.suppress(tw.ToolBudgetExceeded):
            gateway.call("get", {"number": number}, turn=turn)

    with tw.turn("a", watch=watch) as turn, ThreadPoolExecutor(16) as threads:
        list(threads.map(call, range(16)))
    assert len(ran) == 3


def test_a_warning_whose_callback_raises_keeps_back_no_other(watch):
    percents: list[int] = []

    def warned(warning: tw.BudgetWarning) -> None:
        percents.append(warning.percent)
        raise OSError("nobody listens")

    with tw.turn("a", watch=watch, limits=tw.Limits(max_tool_calls=1), on_warning=warned) as turn:
        turn.call_tool("lookup", lambda: 1)
    assert percents == [50, 80, 100]
    assert watch.value("turnwatch_internal_errors_total") == 3

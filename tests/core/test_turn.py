from __future__ import annotations

import asyncio
import gc
import math
import sys
import threading

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from turnwatch.core.events import STOP_REASONS, ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.metrics.prometheus import StoreCollector
from turnwatch.metrics.store import Store
from turnwatch.settings import AgentOverride, Bounds, Detect, Settings, ToolOverride, Tools


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def watch_with(clock: Clock, **settings: object) -> Watch:
    return Watch(Settings(**settings), Store(), clock=clock)


@pytest.fixture
def watch(clock: Clock) -> Watch:
    return watch_with(clock)


def value(watch: Watch, name: str, *labels: str) -> float:
    assert isinstance(watch.meter, Store)
    cell = watch.meter.counters.get(name, {}).get(labels)
    return 0.0 if cell is None else cell.value


def gauge(watch: Watch, name: str, *labels: str) -> float:
    rows = [number for metric, values, number in watch.gauges() if metric == name and values == labels]
    assert len(rows) == 1
    return rows[0]


def call(turn: TurnState, tool: str, args: object, result: object = "same", **more: object) -> ToolCall:
    made = ToolCall(tool, args, **more)
    turn.begin_call(made)
    made.result = Evidence.of(result)
    turn.end_call(made)
    return made


def test_third_identical_call_counts_as_duplicate(watch: Watch):
    turn = watch.open_turn("bot")
    assert [turn.record("search", "aaaa") for _ in range(4)] == [1, 2, 3, 4]
    assert (turn.tool_calls, turn.repeats, turn.duplicates) == (4, 3, 2)
    assert value(watch, "agent_duplicate_tool_calls_total", "bot", "search") == 2


def test_duplicates_are_counted_at_the_call_before_its_result(watch: Watch):
    turn = watch.open_turn("bot")
    for _ in range(3):
        turn.begin_call(ToolCall("search", {"q": 1}))
    assert value(watch, "agent_duplicate_tool_calls_total", "bot", "search") == 1
    assert value(watch, "agent_tool_calls_total", "bot", "search", "ok") == 0


def test_duplicate_series_is_born_at_zero(watch: Watch):
    watch.open_turn("bot").record("search", "aaaa")
    assert isinstance(watch.meter, Store)
    assert watch.meter.counters["agent_duplicate_tool_calls_total"][("bot", "search")].value == 0


def test_another_tool_or_turn_does_not_count(watch: Watch):
    first, second = watch.open_turn("bot"), watch.open_turn("bot")
    assert first.record("search", "aaaa") == first.record("read", "aaaa") == second.record("search", "aaaa") == 1


def test_threshold_of_a_tool_wins_over_that_of_its_agent(clock: Clock):
    watch = watch_with(
        clock,
        tools=Tools(overrides={"poll": ToolOverride(max_identical_calls=5)}),
        agents={"bot": AgentOverride(max_identical_calls=3)},
    )
    turn = watch.open_turn("bot")
    for _ in range(6):
        turn.record("poll", "aaaa")
        turn.record("search", "aaaa")
    assert value(watch, "agent_duplicate_tool_calls_total", "bot", "poll") == 1
    assert value(watch, "agent_duplicate_tool_calls_total", "bot", "search") == 3


def test_missing_arguments_are_counted_and_never_repeat(watch: Watch):
    turn = watch.open_turn("bot")
    assert [turn.record("bash", None) for _ in range(4)] == [0, 0, 0, 0]
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (4, 0, 4)
    assert value(watch, "turnwatch_fingerprint_missing_total", "hand") == 4
    assert turn.verdict is None


def test_repeat_results_are_same_changed_or_unknown(watch: Watch):
    turn = watch.open_turn("bot")
    for result in ("a", "a", "b"):
        call(turn, "search", {"q": 1}, result)
    turn.begin_call(ToolCall("search", {"q": 1}))
    turn.end()
    counted = [
        value(watch, "agent_repeat_results_total", "bot", "search", result) for result in ("same", "changed", "unknown")
    ]
    assert counted == [1, 1, 1]
    assert value(watch, "agent_tool_calls_total", "bot", "search", "error") == 1


def test_three_stale_calls_show_in_the_gauges_and_leave_with_the_window(watch: Watch, clock: Clock):
    turn = watch.open_turn("bot")
    for _ in range(3):
        call(turn, "search", {"q": 1})
        clock.now += 1
    assert gauge(watch, "agent_turn_identical_calls_max", "bot", "search") == 3
    assert gauge(watch, "agent_turn_stale_calls_max", "bot", "search") == 3
    clock.now += 400
    assert gauge(watch, "agent_turn_identical_calls_max", "bot", "search") == 0
    assert gauge(watch, "agent_turn_stale_calls_max", "bot", "search") == 0


def test_stale_calls_are_those_that_started_in_the_window(clock: Clock):
    watch = watch_with(clock, detect=Detect(window_seconds=60.0))
    turn = watch.open_turn("bot")
    for _ in range(200):
        call(turn, "search", {"q": 1})
        clock.now += 10
    stale = gauge(watch, "agent_turn_stale_calls_max", "bot", "search")
    assert stale == gauge(watch, "agent_turn_identical_calls_max", "bot", "search") == 5
    clock.now += 35
    assert gauge(watch, "agent_turn_stale_calls_max", "bot", "search") == 2


def test_changed_results_are_identical_but_not_stale(watch: Watch):
    turn = watch.open_turn("bot")
    for number in range(4):
        call(turn, "search", {"q": 1}, f"page {'abcd'[number]} of the report")
    assert gauge(watch, "agent_turn_identical_calls_max", "bot", "search") == 4
    assert gauge(watch, "agent_turn_stale_calls_max", "bot", "search") <= 1


def test_a_tool_that_is_declared_to_poll_is_identical_but_not_stale(clock: Clock):
    watch = watch_with(clock, tools=Tools(overrides={"get_job": ToolOverride(polling=True)}))
    turn = watch.open_turn("bot")
    for _ in range(4):
        call(turn, "get_job", {"id": 1}, "running")
        clock.now += 1
    assert gauge(watch, "agent_turn_identical_calls_max", "bot", "get_job") == 4
    assert gauge(watch, "agent_turn_stale_calls_max", "bot", "get_job") == 1


def test_gauges_of_a_closed_turn_stay_for_the_window(watch: Watch, clock: Clock):
    turn = watch.open_turn("bot")
    for _ in range(9):
        turn.begin_model()
        turn.end_model(ModelCall("claude-sonnet-4-5", usage=Usage(100_000, 0)))
    turn.end()
    assert gauge(watch, "agent_turn_iterations_max", "bot") == 9
    assert gauge(watch, "agent_turn_spend_usd_max", "bot") == pytest.approx(2.7)
    assert gauge(watch, "agent_turn_tokens_max", "bot") == 900_000
    clock.now += 301
    assert gauge(watch, "agent_turn_iterations_max", "bot") == 0
    assert gauge(watch, "agent_open_turns", "bot") == 0


def test_iteration_threshold_is_counted_once_while_the_turn_runs(clock: Clock):
    watch = watch_with(clock, agents={"coder": AgentOverride(iteration_threshold=60)})
    bot, coder = watch.open_turn("bot"), watch.open_turn("coder")
    for _ in range(8):
        bot.begin_model()
    assert value(watch, "agent_iteration_limit_exceeded_total", "bot") == 0
    for _ in range(12):
        bot.begin_model()
        coder.begin_model()
    assert value(watch, "agent_iteration_limit_exceeded_total", "bot") == 1
    assert value(watch, "agent_iteration_limit_exceeded_total", "coder") == 0


def test_spend_is_counted_on_the_child_and_totalled_in_the_parent(watch: Watch):
    parent = watch.open_turn("lead", conversation_id="c-1")
    child = watch.open_turn("researcher", parent=parent)
    child.begin_model()
    child.end_model(ModelCall("claude-sonnet-4-5", usage=Usage(100_000, 10_000)))
    assert child.conversation_id == "c-1"
    assert (child.spend_usd, parent.spend_usd) == (pytest.approx(0.45), 0.0)
    assert (child.total_spend_usd, parent.total_spend_usd) == (pytest.approx(0.45), pytest.approx(0.45))
    assert parent.total_tokens == 110_000
    assert value(watch, "agent_spend_usd_total", "researcher", "claude-sonnet-4-5") == pytest.approx(0.45)
    assert value(watch, "agent_spend_usd_total", "lead", "claude-sonnet-4-5") == 0
    assert gauge(watch, "agent_turn_spend_usd_max", "lead") == pytest.approx(0.45)
    assert gauge(watch, "agent_conversation_spend_usd_max", "researcher") == pytest.approx(0.45)


def test_unknown_model_is_counted_and_never_free(watch: Watch):
    turn = watch.open_turn("bot")
    turn.begin_model()
    turn.end_model(ModelCall("no-such-model-1", usage=Usage(10, 10)))
    assert turn.spend_usd is None
    assert turn.unpriced_models == {"no-such-model-1"}
    assert value(watch, "agent_unpriced_model_calls_total", "no-such-model-1") == 1


def test_model_call_without_usage_is_counted(watch: Watch):
    turn = watch.open_turn("bot")
    turn.begin_model()
    turn.end_model(ModelCall("claude-sonnet-4-5"))
    assert (turn.usage, turn.spend_usd) == (None, None)
    assert value(watch, "agent_model_calls_without_usage_total", "bot") == 1


def test_what_follows_a_stuck_verdict_is_waste(watch: Watch):
    turn = watch.open_turn("bot")
    while turn.verdict is None or turn.verdict.severity != "stuck":
        call(turn, "search", {"q": 1})
        assert turn.tool_calls < 10
    call(turn, "search", {"q": 1})
    turn.begin_model()
    turn.end_model(ModelCall("claude-sonnet-4-5", usage=Usage(100_000, 0)))
    assert turn.wasted_tool_calls == 1
    assert turn.wasted_usd == pytest.approx(0.3)
    assert value(watch, "agent_wasted_tool_calls_total", "bot", "search") == 1
    assert value(watch, "agent_wasted_usd_total", "bot") == pytest.approx(0.3)
    assert "search" in turn.explain()


def test_verdict_listeners_hear_of_it_and_their_faults_stay_inside(watch: Watch):
    heard = []

    def broken(turn: TurnState, verdict: object) -> None:
        raise RuntimeError("listener")

    watch.on_verdict += [broken, lambda turn, verdict: heard.append((turn.agent, verdict.severity))]
    turn = watch.open_turn("bot")
    for _ in range(6):
        call(turn, "search", {"q": 1})
    assert ("bot", "stuck") in heard
    assert value(watch, "turnwatch_internal_errors_total") >= 1


def test_ping_pong_of_many_short_turns_shows_in_the_conversation(watch: Watch):
    for _ in range(6):
        for agent, tool in (("analyzer", "ask_verifier"), ("verifier", "ask_analyzer")):
            turn = watch.open_turn(agent, conversation_id="c-1")
            turn.begin_model()
            call(turn, tool, {"text": "please clarify section 3.2"}, "ok")
            turn.end()
    assert gauge(watch, "agent_conversation_model_calls_max", "verifier") == 12
    assert gauge(watch, "agent_conversation_identical_calls_max", "verifier") == 6
    assert gauge(watch, "agent_turn_identical_calls_max", "verifier", "ask_analyzer") == 1


def test_conversations_are_bounded_and_forgotten(clock: Clock):
    watch = watch_with(clock, bounds=Bounds(conversations=2, conversation_ttl_s=60))
    for name in ("a", "b", "c"):
        watch.open_turn(conversation_id=name).end()
    assert len(watch.conversations) == 2
    assert watch.conversations.get("a") is None
    assert value(watch, "turnwatch_turns_evicted_total", "conversations_bound") == 1
    clock.now += 61
    watch.open_turn(conversation_id="d")
    assert len(watch.conversations) == 1


def test_distinct_calls_of_a_conversation_are_bounded(clock: Clock):
    watch = watch_with(clock, bounds=Bounds(keys_per_conversation=8))
    for number in range(50):
        turn = watch.open_turn("bot", conversation_id="c-1")
        call(turn, "search", {"q": number}, f"result {number}")
        turn.end()
    conversation = watch.conversations.get("c-1")
    assert conversation is not None
    assert len(conversation.keys) == 8
    assert conversation.engine.remembered <= 8


def test_open_turns_are_bounded_the_oldest_evicted_and_counted(clock: Clock):
    watch = watch_with(clock, bounds=Bounds(open_turns=3))
    turns = [watch.open_turn("bot") for _ in range(5)]
    assert [turn.stop_reason for turn in turns] == ["evicted", "evicted", None, None, None]
    assert value(watch, "turnwatch_turns_evicted_total", "open_turns_bound") == 2
    assert gauge(watch, "agent_open_turns", "bot") == 3


def test_a_turn_nobody_holds_is_no_longer_open(watch: Watch):
    turn = watch.open_turn("bot")
    assert gauge(watch, "agent_open_turns", "bot") == 1
    del turn
    gc.collect()
    assert gauge(watch, "agent_open_turns", "bot") == 0


def test_open_turn_age_is_that_of_the_oldest(watch: Watch, clock: Clock):
    turns = [watch.open_turn("bot")]
    clock.now += 40
    turns.append(watch.open_turn("bot"))
    clock.now += 2
    assert gauge(watch, "agent_open_turn_age_seconds_max", "bot") == 42


def test_distinct_keys_of_a_turn_are_bounded(clock: Clock):
    watch = watch_with(clock, bounds=Bounds(keys_per_turn=8))
    turn = watch.open_turn("bot")
    for number in range(1_000):
        turn.record("search", f"{number:016x}")
    assert turn.dropped_keys == 992
    assert turn.tool_calls == 1_000


def test_label_values_past_the_bound_are_folded_and_counted(clock: Clock):
    watch = watch_with(clock, bounds=Bounds(tools=2), tools=Tools(overrides={"known": ToolOverride(read_only=True)}))
    turn = watch.open_turn("bot")
    for tool in ("a", "b", "c", "d", "known", "c"):
        turn.record(tool, "aaaa")
    assert isinstance(watch.meter, Store)
    tools = {labels[1] for labels in watch.meter.counters["agent_tool_calls_total"]}
    assert tools == {"a", "b", "known", "__other__"}
    assert value(watch, "agent_tool_calls_total", "bot", "__other__", "ok") == 3
    assert value(watch, "turnwatch_label_values_folded_total", "tool") >= 3
    assert turn.repeats == 1


def test_an_ended_call_holds_its_arguments_once_and_is_known_to_turn_and_conversation(watch: Watch):
    turn = watch.open_turn("bot", conversation_id="c-1")
    assert turn.conversation is not None
    for _ in range(3):
        call = ToolCall("search", {"q": ["lost", "parcel"]}, result=Evidence.of("none here"))
        turn.begin_call(call)
        assert call.canonical == b'{"q":["lost","parcel"]}'
        turn.end_call(call)
        assert call.canonical is None
    assert (turn.engine.remembered, turn.conversation.engine.remembered) == (1, 1)


def test_a_call_that_comes_back_after_its_turn_ended_is_counted_once(watch: Watch):
    turn = watch.open_turn("bot")
    call(turn, "search", {"q": 1})
    late = ToolCall("search", {"q": 1})
    turn.begin_call(late)
    turn.end("user_cancelled")
    late.result = Evidence.of("same")
    turn.end_call(late)
    call(turn, "search", {"q": 2})
    assert [value(watch, "agent_tool_calls_total", "bot", "search", outcome) for outcome in ("ok", "error")] == [2, 1]
    results = ("same", "changed", "unknown")
    assert [value(watch, "agent_repeat_results_total", "bot", "search", each) for each in results] == [0, 0, 1]


def test_a_second_end_changes_nothing_and_odd_reasons_are_unknown(watch: Watch):
    turn = watch.open_turn("bot")
    turn.end("because")
    turn.end("error")
    assert turn.stop_reason == "unknown"
    assert "unknown" in STOP_REASONS
    assert value(watch, "agent_turns_total", "bot", "unknown") == 1


def test_a_broken_meter_changes_nothing_for_the_agent(clock: Clock, caplog: pytest.LogCaptureFixture):
    class Broken(Store):
        def counter(self, name: str, *labels: str):
            if name == "agent_duplicate_tool_calls_total":
                raise OSError("disk full")
            return super().counter(name, *labels)

    watch = Watch(Settings(), Broken(), clock=clock)
    turn = watch.open_turn("bot")
    for _ in range(5):
        turn.record("search", "aaaa")
    turn.end()
    assert value(watch, "turnwatch_internal_errors_total") >= 5
    assert len(caplog.records) == 1


@pytest.fixture
def switching_often():
    """Lets another thread run after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.untraced
@pytest.mark.usefixtures("switching_often")
def test_eight_threads_lose_no_count():
    watch = Watch(Settings(detect=Detect(max_identical_calls=2)), Store())
    turn = watch.open_turn("bot")

    def work() -> None:
        for _ in range(5_000):
            turn.record("search", "aaaa")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (turn.tool_calls, watch.faults) == (40_000, 0)
    assert value(watch, "agent_tool_calls_total", "bot", "search", "ok") == 40_000
    assert value(watch, "agent_duplicate_tool_calls_total", "bot", "search") == 39_998


async def test_a_thousand_concurrent_turns_do_not_see_each_other(watch: Watch):
    async def run(number: int) -> list[int]:
        turn = watch.open_turn("bot")
        seen = []
        for step in range(5):
            seen.append(turn.record("search", f"{number if step % 2 else 7:016x}"))
            await asyncio.sleep(0)
        turn.end()
        return seen

    results = await asyncio.gather(*(run(number) for number in range(100, 1_100)))
    assert results == [[1, 1, 2, 2, 3]] * 1_000


@pytest.mark.parametrize("name", [None, 7, b"x", ["x"], {}, "\ud800", "x" * 100_000, 'a\n"b'])
def test_names_that_are_no_text_are_counted_and_leave_the_scrape_whole(clock: Clock, name: object):
    registry = CollectorRegistry()
    store = Store()
    watch = Watch(Settings(), store, clock=clock)
    registry.register(StoreCollector(store, lambda: watch))
    turn = watch.open_turn(name, conversation_id=name)
    assert [turn.record(name, "aaaa") for _ in range(3)] == [1, 2, 3]
    turn.end_model(ModelCall(name, usage=Usage(1, 1)))
    turn.end()
    assert turn.duplicates == 1
    assert watch.faults == 0
    text = generate_latest(registry).decode()
    assert "agent_duplicate_tool_calls_total{" in text
    assert max(map(len, text.splitlines())) < 1_000


class Query:
    def __init__(self, number):
        self.number = number


class SlottedQuery:
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


@pytest.mark.parametrize(
    "args",
    [
        lambda number: {"query": Query(number)},
        lambda number: {"query": SlottedQuery(number)},
        lambda number: {"query": Query(number), "session": SlottedQuery(number), "more": {}},
        lambda number: {"filters": [{"of": Query(number)}]},
        lambda number: {"rows": iter([number])},
        lambda number: Query(number),
    ],
)
def test_arguments_that_do_not_show_what_they_hold_are_missing(args, caplog):
    watch = Watch()
    turn = watch.open_turn("a")
    for number in range(6):
        call = ToolCall("find", args(number))
        turn.begin_call(call)
        call.result = Evidence.of("nothing")
        turn.end_call(call)
    assert (turn.repeats, turn.missing_arguments, turn.verdict) == (0, 6, None)
    (line,) = caplog.messages
    assert "tool find shows what it holds" in line


def test_a_client_beside_arguments_that_show_what_they_hold_does_not_matter():
    turn = Watch().open_turn("a")
    counts = [turn.begin_call(ToolCall("find", {"session": Query(1), "name": name})) for name in ("x", "y", "x")]
    assert (counts, turn.missing_arguments) == ([1, 1, 2], 0)


def test_an_argument_that_does_not_show_what_it_holds_can_be_left_out():
    watch = Watch(Settings(tools={"overrides": {"find": {"volatile_keys": ["session"]}}}))
    turn = watch.open_turn("a")
    counts = [turn.begin_call(ToolCall("find", {"session": Query(1)})) for _ in range(2)]
    assert (counts, turn.missing_arguments) == ([1, 2], 0)


def test_no_text_is_taken_for_an_object_that_hides_what_it_holds():
    turn = Watch().open_turn("a")
    for args in ('{"\\u0000": ["type", "x"]}', {"\0": ["type", "x"]}, {"a": '{"\\u0000":["type","x"]}'}):
        assert turn.begin_call(ToolCall("find", args)) > 0


@pytest.mark.parametrize("key", [1, b"x", ["x"], {}, object()])
def test_a_hash_that_is_no_text_is_counted(watch: Watch, key: object):
    turn = watch.open_turn("bot")
    assert [turn.record("search", key) for _ in range(2)] == [1, 2]
    assert watch.faults == 0


@pytest.mark.parametrize("dollars", [math.nan, math.inf, -1.0])
def test_dollars_that_are_no_amount_are_not_counted(watch: Watch, dollars: float):
    turn = watch.open_turn("bot")
    turn.end_model(ModelCall("claude-sonnet-4-5", usage=Usage(1000, 0), spend_usd=dollars))
    assert turn.spend_usd is not None
    assert 0 < turn.spend_usd < 1
    assert value(watch, "agent_spend_usd_total", "bot", "claude-sonnet-4-5") == turn.spend_usd


def test_an_agent_that_the_settings_name_keeps_its_label_and_threshold_past_the_bound(clock: Clock):
    watch = watch_with(clock, bounds=Bounds(agents=1), agents={"coder": AgentOverride(iteration_threshold=60)})
    for agent in ("first", "second"):
        watch.open_turn(agent)
    assert watch.open_turn("second").series.label == "__other__"
    coder = watch.open_turn("coder").series
    assert (coder.label, coder.iteration_threshold) == ("coder", 60)

from __future__ import annotations

import asyncio
import enum
import functools
import math
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import turnwatch as tw
from turnwatch.core.watch import Watch
from turnwatch.guards import from_settings
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings
from turnwatch.sources import hand


@pytest.fixture
def watch() -> Watch:
    return Watch(Settings(), Store())


def value(watch: Watch, name: str, *labels: str) -> float:
    assert isinstance(watch.meter, Store)
    cell = watch.meter.counters.get(name, {}).get(labels)
    return 0.0 if cell is None else cell.value


def search_orders(customer_id: str, limit: int = 10) -> list[str]:
    return []


async def fetch(url: str) -> str:
    await asyncio.sleep(0)
    return "page"


def test_call_tool_returns_what_the_tool_returns_and_counts_it(watch: Watch):
    with tw.turn(agent="support-bot", conversation_id="c-17", watch=watch) as turn:
        for _ in range(3):
            assert turn.call_tool("search_orders", search_orders, customer_id="C-7841") == []
        assert turn.tool_calls == 3
    assert turn.stop_reason == "final_answer"
    assert value(watch, "agent_duplicate_tool_calls_total", "support-bot", "search_orders") == 1
    assert value(watch, "agent_repeat_results_total", "support-bot", "search_orders", "same") == 2


def test_calls_are_timed(watch: Watch, spans: InMemorySpanExporter):
    with tw.turn(agent="bot", watch=watch) as turn:
        turn.call_tool("wait", time.sleep, 0.01)
        with turn.model_call("gpt-4o"):
            time.sleep(0.01)
    assert isinstance(watch.meter, Store)
    assert watch.meter.histograms["agent_tool_call_duration_seconds"]["bot", "wait"].total >= 0.01
    assert watch.meter.histograms["agent_model_call_duration_seconds"]["bot", "gpt-4o"].total >= 0.01
    tool = next(span for span in spans.get_finished_spans() if span.name == "tool.execute")
    assert tool.attributes["latency_ms"] >= 10


def test_positional_and_keyword_arguments_are_the_same_call(watch: Watch):
    with tw.turn(watch=watch) as turn:
        turn.call_tool("search_orders", search_orders, "C-7841")
        turn.call_tool("search_orders", search_orders, customer_id="C-7841")
        assert turn.state.repeats == 1


def test_an_exception_from_a_tool_passes_unchanged_with_its_traceback(watch: Watch):
    error = ValueError("no such customer")

    def broken() -> None:
        raise error

    with tw.turn(watch=watch) as turn, pytest.raises(ValueError, match="no such customer") as caught:
        turn.call_tool("broken", broken)
    assert caught.value is error
    assert any(frame.name == "broken" for frame in traceback.extract_tb(caught.value.__traceback__))
    assert caught.value.__cause__ is None
    assert value(watch, "agent_tool_calls_total", "unknown", "broken", "error") == 1


def test_a_turn_left_by_an_exception_ends_in_error(watch: Watch):
    with pytest.raises(RuntimeError, match="boom"), tw.turn(agent="bot", watch=watch) as turn:
        raise RuntimeError("boom")
    assert turn.stop_reason == "error"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (tw.BudgetExceeded("over"), "max_usd"),
        (tw.StepLimitExceeded("over"), "max_iterations"),
        (tw.LoopDetected("loop"), "loop_detected"),
        (KeyboardInterrupt(), "user_cancelled"),
        (asyncio.CancelledError(), "user_cancelled"),
    ],
)
def test_stop_reason_comes_from_the_exception(watch: Watch, error: BaseException, reason: str):
    with pytest.raises(type(error)), tw.turn(agent="bot", watch=watch) as turn:
        raise error
    assert turn.stop_reason == reason


class Quarrelsome(str):
    """A reason that can be neither compared nor kept in a dict, as arrays and data frames cannot."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")


class Reason(enum.StrEnum):
    KILLED = "killed"


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        (["killed"], "unknown"),
        ({}, "unknown"),
        (Quarrelsome("killed"), "killed"),
        (Reason.KILLED, "killed"),
        (None, "final_answer"),
    ],
    ids=["list", "mapping", "quarrelsome", "enumeration", "none"],
)
def test_a_turn_ends_whatever_it_is_told_to_stop_for(watch: Watch, said: object, counted: str):
    with tw.turn(agent="bot", watch=watch) as turn:
        turn.stop(said)
    assert (type(turn.stop_reason), turn.stop_reason) == (str, counted)
    assert value(watch, "agent_turns_total", "bot", counted) == 1
    assert watch.faults == 0


def test_a_turn_ends_whatever_reason_an_exception_gives(watch: Watch):
    with pytest.raises(tw.TurnStopped), tw.turn(agent="bot", watch=watch) as turn:
        raise tw.TurnStopped("over", stop_reason=Quarrelsome("killed"))
    assert turn.stop_reason == "killed"
    assert watch.faults == 0


def test_the_keywords_of_a_turn_are_checked_once(watch: Watch, monkeypatch: pytest.MonkeyPatch):
    checked: list[object] = []
    for module in (hand, from_settings):
        monkeypatch.setattr(module, "check_keywords", checked.append)
    with tw.turn(agent="bot", watch=watch, limits=tw.Limits(max_usd=1.0)):
        pass
    assert len(checked) == 1


def test_model_calls_count_iterations_tokens_and_dollars(watch: Watch):
    with tw.turn(agent="bot", watch=watch) as turn:
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage({"usage": {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 50}})
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=1_000, output_tokens=50)
        assert turn.iterations == 2
        assert turn.spend_usd == pytest.approx((900 * 3 + 100 * 0.3 + 50 * 15 + 1_000 * 3 + 50 * 15) / 1e6)


def test_the_same_text_again_and_again_is_a_monologue(watch: Watch):
    reply = {"choices": [{"message": {"content": "I will look into it now."}}], "usage": {"prompt_tokens": 9}}
    with tw.turn(agent="bot", watch=watch) as turn:
        for _ in range(12):
            with turn.model_call("gpt-4o") as call:
                call.usage(reply)
    assert turn.verdict is not None
    assert (turn.verdict.kind, turn.verdict.severity) == ("monologue", "stuck")
    assert "look into" not in turn.explain()


def test_a_failed_model_call_is_an_iteration_and_passes_its_error(watch: Watch):
    with tw.turn(agent="bot", watch=watch) as turn:
        with pytest.raises(TimeoutError), turn.model_call("gpt-4o"):
            raise TimeoutError
        assert turn.iterations == 1
    assert value(watch, "agent_model_calls_total", "bot", "gpt-4o", "error") == 1


async def test_async_turns_and_tools(watch: Watch):
    async with tw.turn(agent="bot", watch=watch) as turn:
        assert tw.current_turn() is turn
        pages = await asyncio.gather(*(turn.acall_tool("fetch", fetch, "https://example.org") for _ in range(3)))
        assert pages == ["page"] * 3
    assert tw.current_turn() is None
    assert turn.state.duplicates == 1


async def test_a_model_call_is_an_async_block_too(watch: Watch):
    async with tw.turn("bot", watch=watch) as turn:
        async with turn.model_call("claude-sonnet-4-5") as call:
            await asyncio.sleep(0)
            call.usage(input_tokens=10, output_tokens=1)
        with pytest.raises(TimeoutError):
            async with turn.model_call("claude-sonnet-4-5"):
                raise TimeoutError
    assert (turn.iterations, turn.spend_usd) == (2, pytest.approx(45e-6))
    assert value(watch, "agent_model_calls_total", "bot", "claude-sonnet-4-5", "error") == 1


class _AsyncTool:
    async def __call__(self, url: str) -> str:
        return await fetch(url)


@pytest.mark.parametrize("tool", [fetch, functools.partial(fetch), lambda url: fetch(url), _AsyncTool()])
async def test_a_tool_that_gives_a_coroutine_is_refused_where_nothing_is_awaited(
    tool: Callable[[str], Awaitable[str]], watch: Watch
):
    async with tw.turn("bot", watch=watch) as turn:
        with pytest.raises(TypeError, match="fetch gives a coroutine: use acall_tool"):
            turn.call_tool("fetch", tool, "https://example.org")
        assert await turn.acall_tool("fetch", tool, "https://example.org") == "page"
    assert value(watch, "agent_tool_calls_total", "bot", "fetch", "error") == 1
    assert value(watch, "agent_tool_calls_total", "bot", "fetch", "ok") == 1


async def test_concurrent_turns_do_not_mix(watch: Watch):
    async def run(number: int) -> tuple[int, bool]:
        async with tw.turn(agent="bot", watch=watch) as turn:
            for _ in range(3):
                await turn.acall_tool("fetch", fetch, f"https://example.org/{number}")
                assert tw.current_turn() is turn
            return turn.tool_calls, turn.state.duplicates == 1

    assert await asyncio.gather(*(run(number) for number in range(1_000))) == [(3, True)] * 1_000


def test_a_nested_turn_is_a_child_in_the_same_conversation(watch: Watch):
    with tw.turn(agent="lead", conversation_id="c-1", watch=watch) as outer:
        with tw.turn(agent="helper", watch=watch) as inner, inner.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=1_000_000 // 10, output_tokens=0)
        assert inner.state.parent is outer.state
        assert inner.state.conversation_id == "c-1"
        assert outer.state.total_spend_usd == pytest.approx(0.3)
        assert outer.spend_usd == 0.0


def test_spans_carry_what_the_design_names(watch: Watch, spans: InMemorySpanExporter):
    with tw.turn(agent="support-bot", conversation_id="c-17", watch=watch) as turn:
        for _ in range(4):
            with turn.model_call("claude-sonnet-4-5") as call:
                call.usage(input_tokens=100, output_tokens=10, cache_read_tokens=40)
            turn.call_tool("search_orders", search_orders, customer_id="C-7841")
    by_name: dict[str, list] = {}
    for span in spans.get_finished_spans():
        by_name.setdefault(span.name, []).append(span)
    (root,) = by_name["agent.turn"]
    assert root.kind is SpanKind.INTERNAL
    assert root.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert root.attributes["gen_ai.conversation.id"] == "c-17"
    assert root.attributes["gen_ai.agent.name"] == "support-bot"
    assert root.attributes["agent.iterations"] == 4
    assert root.attributes["agent.stop_reason"] == "final_answer"
    assert root.attributes["loop.detected"] is True
    assert root.attributes["loop.kind"] == "stale_repeat"
    assert "C-7841" not in str(root.attributes) + str([event.attributes for event in root.events])
    assert [event.name for event in root.events][:1] == ["loop.detected"]
    tool = by_name["tool.execute"][1]
    assert tool.parent.span_id == root.context.span_id
    assert {span.attributes["gen_ai.conversation.id"] for named in by_name.values() for span in named} == {"c-17"}
    assert tool.attributes["tool.input_hash"] == tw.input_hash("search_orders", {"customer_id": "C-7841"})
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert (tool.attributes["tool.name"], tool.attributes["gen_ai.tool.name"]) == ("search_orders", "search_orders")
    assert (tool.attributes["iteration"], tool.attributes["tool.result_size"]) == (2, 2)
    assert tool.attributes["latency_ms"] >= 0
    chat = by_name["llm.chat"][0]
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.request.model"] == "claude-sonnet-4-5"
    assert chat.attributes["gen_ai.provider.name"] == "anthropic"
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 40
    assert all(span.attributes["turnwatch.counted"] for span in spans.get_finished_spans())


def test_the_provider_that_the_caller_names_goes_before_the_models_name(watch: Watch, spans: InMemorySpanExporter):
    with tw.turn(agent="bot", watch=watch) as turn:
        with turn.model_call("claude-sonnet-4-5", provider="aws.bedrock"):
            pass
        with turn.model_call("house-model"):
            pass
    chats = [span.attributes for span in spans.get_finished_spans() if span.name == "llm.chat"]
    assert [chat.get("gen_ai.provider.name") for chat in chats] == ["aws.bedrock", None]


def test_span_of_a_failed_tool_has_the_error_class_and_not_its_text(watch: Watch, spans: InMemorySpanExporter):
    def broken(secret: str) -> None:
        raise PermissionError(secret)

    with tw.turn(agent="bot", watch=watch) as turn, pytest.raises(PermissionError):
        turn.call_tool("broken", broken, secret="hunter2")
    tool = next(span for span in spans.get_finished_spans() if span.name == "tool.execute")
    assert tool.attributes["error.type"] == "PermissionError"
    assert tool.status.status_code is StatusCode.ERROR
    assert "hunter2" not in "".join(span.to_json() for span in spans.get_finished_spans())


def test_no_span_is_opened_inside_another_instrumentations_span_of_the_same_thing(
    watch: Watch, spans: InMemorySpanExporter
):
    tracer = trace.get_tracer_provider().get_tracer("some.framework")
    framework = tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"})
    with framework, tw.turn(agent="bot", watch=watch) as turn:
        turn.call_tool("search_orders", search_orders, "C-1")
    assert sorted(span.name for span in spans.get_finished_spans()) == ["invoke_agent bot", "tool.execute"]


def test_tool_spans_of_worker_threads_hang_under_the_turn(watch: Watch, spans: InMemorySpanExporter):
    with tw.turn(agent="bot", watch=watch) as turn:
        thread = threading.Thread(target=turn.call_tool, args=("search_orders", search_orders, "C-1"))
        thread.start()
        thread.join()
    tool, root = spans.get_finished_spans()
    assert tool.parent.span_id == root.context.span_id


def test_spans_can_be_switched_off(spans: InMemorySpanExporter):
    with tw.turn(agent="bot", watch=Watch(Settings(spans=False), Store())) as turn:
        turn.call_tool("search_orders", search_orders, "C-1")
    assert spans.get_finished_spans() == ()


def test_a_fault_inside_turnwatch_changes_nothing_for_the_agent(watch: Watch, monkeypatch: pytest.MonkeyPatch):
    def broken(*args: object, **kwargs: object) -> str:
        raise OSError("inside")

    monkeypatch.setattr("turnwatch.core.turn.canonical_bytes", broken)
    with tw.turn(agent="bot", watch=watch) as turn:
        assert turn.call_tool("search_orders", search_orders, "C-1") == []
        with turn.model_call("gpt-4o") as call:
            call.usage(object())
    assert value(watch, "turnwatch_internal_errors_total") >= 1


@pytest.mark.parametrize("said", [math.nan, -5, 10**400, "many", True])
def test_numbers_that_are_no_tokens_or_dollars_are_not_counted(watch: Watch, said: object):
    with tw.turn(agent="bot", watch=watch) as turn:
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=said, output_tokens=10, cache_read_tokens=said)
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=said, output_tokens=said)
        assert turn.state.usage == tw.Usage(0, 10)
        assert turn.spend_usd == pytest.approx(150e-6)
    assert value(watch, "agent_model_calls_without_usage_total", "bot") == 1


def test_names_that_are_no_text_do_not_disturb_the_agent(watch: Watch, spans: InMemorySpanExporter):
    with tw.turn(agent=None, conversation_id=17, watch=watch) as turn:
        assert turn.call_tool(None, lambda: 1) == 1
        with turn.model_call(None):
            pass
    assert watch.faults == 0
    assert turn.state.conversation_id == "17"
    assert all(type(text) is str for span in spans.get_finished_spans() for text in _names(span.attributes))


def _names(attributes: Mapping[str, object]) -> list[object]:
    return [attributes[key] for key in attributes if key.startswith(("gen_ai.", "tool.name"))]


def test_streams_and_responses_are_results_that_are_not_known(watch: Watch):
    def stream(q: str) -> Iterator[int]:
        yield from range(3)

    with tw.turn(agent="bot", watch=watch) as turn:
        for _ in range(4):
            assert list(turn.call_tool("stream", stream, q="x")) == [0, 1, 2]
    assert value(watch, "agent_repeat_results_total", "bot", "stream", "unknown") == 3
    assert value(watch, "agent_repeat_results_total", "bot", "stream", "same") == 0


def test_a_turn_entered_again_inside_itself_is_one_turn(watch: Watch):
    with tw.turn("shop", watch=watch) as turn:
        turn.call_tool("search_orders", search_orders, "C-7841")
        with turn as again:
            assert again is turn
            assert tw.current_turn() is turn
            turn.call_tool("search_orders", search_orders, "C-7841")
        assert turn.stop_reason is None
        assert tw.current_turn() is turn
    assert (turn.tool_calls, turn.state.repeats, turn.stop_reason) == (2, 1, "final_answer")
    assert tw.current_turn() is None
    assert value(watch, "agent_turns_total", "shop", "final_answer") == 1


async def test_a_turn_entered_again_inside_itself_is_one_turn_in_coroutines(watch: Watch):
    turn = tw.turn("shop", watch=watch)
    async with turn, turn:
        await turn.acall_tool("fetch", fetch, "u")
    assert (turn.tool_calls, turn.stop_reason) == (1, "final_answer")
    assert value(watch, "agent_turns_total", "shop", "final_answer") == 1


def test_a_turn_id_that_is_neither_true_nor_false_is_an_id(watch: Watch):
    class Id:
        def __bool__(self) -> bool:
            raise ValueError("ambiguous")

        def __str__(self) -> str:
            return "t-1"

    with tw.turn(agent="bot", turn_id=Id(), watch=watch) as turn:
        assert turn.state.turn_id == "t-1"
    with tw.turn(agent="bot", turn_id="", watch=watch) as turn:
        assert len(turn.state.turn_id) == 32


def test_a_callback_that_interrupts_leaves_no_span_open(watch: Watch, spans: InMemorySpanExporter):
    def interrupt(_warning: tw.BudgetWarning) -> None:
        raise KeyboardInterrupt

    turn = tw.turn("bot", watch=watch, limits=tw.Limits(max_tokens=100), on_warning=interrupt)
    with pytest.raises(KeyboardInterrupt), turn, turn.model_call("gpt-4o") as call:
        call.usage(input_tokens=60, output_tokens=1)
    assert [span.name for span in spans.get_finished_spans()] == ["llm.chat", "agent.turn"]
    assert not trace.get_current_span().get_span_context().is_valid

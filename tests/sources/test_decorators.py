"""Functions, coroutines and generators as tools and turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import ContextVar, copy_context

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import turnwatch as tw
from turnwatch.core.default import set_default_watch
from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store


@pytest.fixture(autouse=True)
def watch() -> Iterator[Watch]:
    """The watch that turns get that name none."""
    watch = Watch(meter=Store())
    set_default_watch(watch)
    yield watch
    set_default_watch(None)


def value(watch: Watch, name: str, *labels: str) -> float:
    assert isinstance(watch.meter, Store)
    cell = watch.meter.counters.get(name, {}).get(labels)
    return 0.0 if cell is None else cell.value


def search_orders(customer_id: str) -> list[str]:
    return []


async def fetch(url: str) -> str:
    await asyncio.sleep(0)
    return "page"


class Calculator:
    """An object that is called like a coroutine function."""

    async def __call__(self, numbers: list[int]) -> tw.Turn | None:
        await asyncio.sleep(0)
        if not numbers:
            raise ValueError("nothing to add up")
        return tw.current_turn()


# Tools


async def test_an_object_that_is_called_like_a_coroutine_function_is_one(watch):
    tool, agent = tw.watch_tool(name="add")(Calculator()), tw.watch_turn(agent="adding")(Calculator())
    with tw.turn("bot"), pytest.raises(ValueError, match="nothing"):
        await tool([])
    assert value(watch, "agent_tool_calls_total", "bot", "add", "error") == 1
    inside = await agent([1])
    assert inside.state.agent == "adding"


def test_decorated_functions_count_inside_a_turn_and_run_alone_outside():
    @tw.watch_tool
    def add(a: int, b: int) -> int:
        return a + b

    @tw.watch_tool(name="page")
    async def load(url: str) -> str:
        return url

    assert add(1, 2) == 3
    with tw.turn(agent="bot") as turn:
        assert add(1, b=2) == 3
        assert asyncio.run(load("x")) == "x"
        assert turn.tool_calls == 2
    assert add.__name__ == "add"


class Orders:
    @tw.watch_tool
    def of(self, customer_id: str) -> object:
        return customer_id

    @tw.watch_tool
    @staticmethod
    def count(customer_id: str) -> object:
        return customer_id

    @tw.watch_tool(name="all_of")
    @classmethod
    def every(cls, customer_id: str) -> object:
        return cls, customer_id

    @staticmethod
    @tw.watch_tool
    def latest(customer_id: str) -> object:
        return customer_id

    @tw.watch_turn
    @staticmethod
    def answer() -> object:
        return tw.current_turn()


@pytest.mark.parametrize("owner", [Orders(), Orders], ids=["object", "class"])
@pytest.mark.parametrize(
    ("method", "tool", "result"),
    [("count", "count", "C-1"), ("every", "all_of", (Orders, "C-1")), ("latest", "latest", "C-1")],
)
def test_static_and_class_methods_are_tools_whichever_decorator_is_above(watch, owner, method, tool, result):
    call = getattr(owner, method)
    assert call("C-1") == result
    with tw.turn(agent="bot") as turn:
        assert [call("C-1"), call(customer_id="C-1")] == [result, result]
        assert turn.state.repeats == 1
    assert value(watch, "agent_tool_calls_total", "bot", tool, "ok") == 2


def test_the_object_of_a_method_is_none_of_its_arguments():
    with tw.turn(agent="bot") as turn:
        assert [Orders().of("C-1"), Orders().of(customer_id="C-1")] == ["C-1", "C-1"]
        assert turn.state.repeats == 1


# Turns


def test_decorated_turns(watch: Watch):
    @tw.watch_turn(agent="support-bot", conversation_id=lambda question, user: f"c-{user}")
    def answer(question: str, user: int) -> str:
        assert tw.current_turn() is not None
        return question.upper()

    @tw.watch_turn
    async def answer_later(question: str) -> str:
        turn = tw.current_turn()
        assert turn is not None
        return turn.state.agent

    assert answer("hi", user=7) == "HI"
    assert asyncio.run(answer_later("hi")) == "answer_later"
    assert value(watch, "agent_turns_total", "support-bot", "final_answer") == 1
    assert watch.conversations.get("c-7") is not None


def test_a_conversation_that_cannot_be_told_costs_the_turn_its_conversation_only(watch: Watch):
    @tw.watch_turn(conversation_id=lambda user: user["session"])
    def answer(user: dict[str, str]) -> str | None:
        turn = tw.current_turn()
        assert turn is not None
        return turn.state.conversation_id

    assert answer({"session": "c-1"}) == "c-1"
    assert answer({}) is None
    assert value(watch, "turnwatch_internal_errors_total") == 1


def test_a_static_method_is_a_turn():
    turn = Orders().answer()
    assert (turn.state.agent, turn.stop_reason) == ("answer", "final_answer")


# Turns of generators


def test_the_turn_of_a_generator_lasts_until_its_last_step(watch: Watch):
    @tw.watch_turn(agent="streamer")
    def answer():
        turn = tw.current_turn()
        assert turn is not None
        turn.call_tool("search_orders", search_orders, "C-7841")
        received = yield "a"
        yield received
        return turn

    steps = answer()
    assert [next(steps), steps.send("b")] == ["a", "b"]
    with pytest.raises(StopIteration) as stopped:
        next(steps)
    turn = stopped.value.value
    assert (turn.tool_calls, turn.stop_reason) == (1, "final_answer")
    assert tw.current_turn() is None

    unfinished = answer()
    next(unfinished)
    unfinished.close()
    assert value(watch, "agent_turns_total", "streamer", "user_cancelled") == 1


def test_what_is_thrown_into_a_generator_arrives_in_it(watch: Watch):
    @tw.watch_turn(agent="streamer")
    def answer():
        try:
            yield "a"
        except KeyError:
            yield "no such key"

    steps = answer()
    assert [next(steps), steps.throw(KeyError("x"))] == ["a", "no such key"]
    with pytest.raises(OSError, match="gone"):
        steps.throw(OSError("gone"))
    assert value(watch, "agent_turns_total", "streamer", "error") == 1


async def test_what_is_sent_and_thrown_into_an_async_generator_arrives_in_it(watch: Watch):
    @tw.watch_turn(agent="streamer")
    async def answer():
        try:
            yield (yield "a")
        except KeyError:
            yield "no such key"

    steps = answer()
    assert [await anext(steps), await steps.asend("b"), await steps.athrow(KeyError("x"))] == ["a", "b", "no such key"]
    with pytest.raises(OSError, match="gone"):
        await steps.athrow(OSError("gone"))
    assert value(watch, "agent_turns_total", "streamer", "error") == 1


async def test_the_turn_of_an_async_generator_lasts_until_its_last_step(watch: Watch):
    @tw.watch_turn(agent="streamer")
    async def answer():
        turn = tw.current_turn()
        assert turn is not None
        for _ in range(2):
            yield await turn.acall_tool("fetch", fetch, "u")

    assert [step async for step in answer()] == ["page", "page"]
    assert value(watch, "agent_turns_total", "streamer", "final_answer") == 1
    assert value(watch, "agent_repeat_results_total", "streamer", "fetch", "same") == 1
    assert tw.current_turn() is None


async def test_an_async_generator_that_is_cancelled_at_a_step_ends_its_turn(watch: Watch):
    @tw.watch_turn(agent="streamer")
    async def answer():
        yield "a"
        await asyncio.Event().wait()

    async def consume() -> None:
        async for _ in answer():
            begun.set()

    begun = asyncio.Event()
    consumer = asyncio.create_task(consume())
    await begun.wait()
    await asyncio.sleep(0)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert value(watch, "agent_turns_total", "streamer", "user_cancelled") == 1


@tw.watch_turn(agent="streamer")
def three_steps():
    turn = tw.current_turn()
    for _ in range(3):
        assert tw.current_turn() is turn
        yield turn


@tw.watch_turn(agent="streamer")
async def three_async_steps():
    turn = tw.current_turn()
    for _ in range(3):
        await asyncio.sleep(0)
        assert tw.current_turn() is turn
        yield turn


def test_generators_whose_steps_alternate_are_no_parents_of_each_other(spans: InMemorySpanExporter):
    with tw.turn("around") as around:
        pairs = list(zip(three_steps(), three_steps(), strict=True))
        assert tw.current_turn() is around
    assert len({id(turn) for pair in pairs for turn in pair}) == 2
    assert all(turn.state.parent is around.state for pair in pairs for turn in pair)
    *inner, outer = spans.get_finished_spans()
    assert [span.parent.span_id for span in inner] == [outer.context.span_id] * 2


async def test_async_generators_whose_steps_alternate_are_no_parents_of_each_other():
    first, second = three_async_steps(), three_async_steps()
    turns = [await anext(steps) for _ in range(3) for steps in (first, second)]
    assert [turn.state.parent for turn in turns] == [None] * 6
    assert len({id(turn) for turn in turns}) == 2
    assert [step async for step in first] == [step async for step in second] == []


def test_each_step_is_in_the_turn_where_the_caller_takes_each_in_a_context_of_its_own():
    # As web servers do that stream from a thread pool
    steps = three_steps()
    turns = [copy_context().run(next, steps) for _ in range(3)]
    assert len({id(turn) for turn in turns}) == 1
    assert copy_context().run(next, steps, "over") == "over"
    assert turns[0].stop_reason == "final_answer"


def test_what_the_caller_does_between_the_steps_is_not_in_the_turn():
    asked_by = ContextVar("asked_by", default="nobody")

    @tw.watch_turn
    def answer():
        yield asked_by.get()
        asked_by.set("the generator")
        yield asked_by.get()

    asked_by.set("the caller")
    seen = []
    for step in answer():
        assert tw.current_turn() is None
        assert asked_by.get() == "the caller"
        seen.append(step)
    assert seen == ["the caller", "the generator"]

"""Turns out of the spans of a real TracerProvider in this process."""

import asyncio
import gc
import multiprocessing
import socket
import threading
import weakref

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from tests.ports import kept_port
from tests.sources.spans.corpus import CountingMeter, added_up, cases, found_in
from tests.sources.spans.replay import replay

from turnwatch.core.watch import Watch
from turnwatch.metrics import outlet
from turnwatch.settings import Settings
from turnwatch.sources.hand import turn as hand_turn
from turnwatch.sources.spans.instrument import instrument
from turnwatch.sources.spans.processor import TurnSpanProcessor


class Bench:
    """A provider with turnwatch on it, and the turns that were opened."""

    def __init__(self, **options):
        self.meter = CountingMeter()
        self.watch = Watch(options.pop("settings", Settings()), self.meter)
        self.turns = []
        opened = self.watch.opened

        def remember(turn):
            self.turns.append(turn)
            return opened(turn)

        self.watch.opened = remember
        self.processor = TurnSpanProcessor(self.watch, **options)
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)
        self.exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("my.instrumentation")

    def agent(self, name="bot"):
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        return self.tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes)

    def chat(self):
        with self.tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
            span.set_attributes({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1})

    def tool(self, args='{"q": 1}', name="search", result="nothing"):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        with self.tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
            span.set_attribute("gen_ai.tool.call.arguments", args)
            span.set_attribute("gen_ai.tool.call.result", result)

    def faults(self):
        return self.meter.total("turnwatch_internal_errors_total")


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.processor.shutdown()
    assert bench.faults() == 0


def test_a_span_that_the_garbage_collector_ends_while_another_is_counted_is_counted(bench, monkeypatch):
    assembler = bench.processor._assembler
    feed = assembler.feed

    def steps():
        span = bench.tracer.start_span("execute_tool left", attributes={"gen_ai.operation.name": "execute_tool"})
        try:
            yield
        finally:
            span.end()

    def collecting(spans, now):
        monkeypatch.setattr(assembler, "feed", feed)
        streaming = steps()
        next(streaming)
        cycle = [streaming]
        cycle.append(cycle)
        del streaming, cycle
        gc.collect()
        feed(spans, now)

    monkeypatch.setattr(assembler, "feed", collecting)
    thread = threading.Thread(target=bench.tool, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    bench.processor.shutdown()
    assert sum(turn.tool_calls for turn in bench.turns) == 2


@pytest.mark.untraced
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.dialect}-{case.name}") for case in cases()])
def test_captured_spans_made_again_give_the_numbers_of_the_file(case):
    meter, turns = CountingMeter(), []
    watch = Watch(meter=meter)
    opened = watch.opened

    def remember(turn):
        turns.append(turn)
        return opened(turn)

    watch.opened = remember
    processor = TurnSpanProcessor(watch)
    replay(case.files("sdk-json")[0], processor)
    processor.shutdown()
    found = added_up(turns, meter)
    assert found.numbers == found_in(case, "sdk-json").numbers
    assert found.faults == 0


def test_the_open_span_of_a_stuck_turn_says_so(bench):
    with bench.agent() as span:
        for _ in range(7):
            bench.chat()
            bench.tool()
        attributes = dict(span.attributes)
    assert attributes["loop.detected"] is True
    assert attributes["loop.kind"] == "stale_repeat"
    assert "search" in attributes["loop.reason"]
    assert attributes["agent.iterations"] == 7
    exported = {span.name: span for span in bench.exporter.get_finished_spans()}
    assert exported["invoke_agent bot"].attributes["loop.detected"] is True


def test_without_an_agent_the_topmost_open_span_says_so(bench):
    with bench.tracer.start_as_current_span("POST /ask") as root:
        for _ in range(7):
            bench.chat()
            bench.tool()
        assert root.attributes["loop.detected"] is True


def test_a_turn_counts_under_its_agent_from_its_first_call_on(bench):
    with bench.agent("support-bot"):
        bench.tool()
        assert bench.meter.total("agent_tool_calls_total", "support-bot", "search") == 1


def test_spans_of_the_programs_own_inside_an_agent_are_steps_of_its_turn(bench):
    own = bench.provider.get_tracer("my.app")
    with bench.agent("support-bot"):
        for _ in range(2):
            with own.start_as_current_span("plan"), own.start_as_current_span("attempt"):
                for _ in range(3):
                    bench.chat()
                    bench.tool()
        assert bench.meter.total("agent_tool_calls_total", "support-bot", "search") == 6
    bench.processor.shutdown()
    (turn,) = bench.turns
    assert (turn.agent, turn.iterations, turn.tool_calls, turn.repeats) == ("support-bot", 6, 6, 5)
    assert not bench.processor._assembler.passed


def test_a_tools_span_inside_an_agent_that_says_only_at_its_end_what_it_is_counts(bench):
    with bench.agent("support-bot"):
        for _ in range(2):
            with bench.tracer.start_as_current_span("lookup") as span:
                bench.chat()
                tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "tool_arguments": "{}"}
                span.set_attributes(tool)
    bench.processor.shutdown()
    (turn,) = bench.turns
    assert (turn.agent, turn.iterations, turn.tool_calls, turn.repeats) == ("support-bot", 2, 2, 1)
    assert not bench.processor._assembler.passed


def test_a_sub_agent_has_its_own_turn_and_its_spend_counts_in_its_parents(bench):
    with bench.agent("outer"):
        bench.chat()
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask", "gen_ai.tool.call.arguments": "{}"}
        with bench.tracer.start_as_current_span("execute_tool ask", attributes=tool), bench.agent("inner"):
            bench.chat()
            bench.tool()
        bench.chat()
    bench.processor.shutdown()
    turns = {turn.agent: turn for turn in bench.turns}
    assert (turns["outer"].iterations, turns["outer"].tool_calls) == (2, 1)
    assert (turns["inner"].iterations, turns["inner"].tool_calls) == (1, 1)


def test_calls_inside_a_turn_opened_by_hand_count_in_it(bench):
    with hand_turn(agent="by-hand", watch=bench.watch) as turn:
        with bench.tracer.start_as_current_span("handler"):
            bench.chat()
            bench.tool()
        bench.tool()
        assert (turn.iterations, turn.tool_calls, turn.state.repeats) == (1, 2, 1)
    assert len(bench.turns) == 1


def test_what_says_only_at_its_end_what_it_is_counts_in_the_turn_opened_by_hand(bench):
    with hand_turn("outer", watch=bench.watch), bench.tracer.start_as_current_span("Workflow.run") as run:
        for _ in range(3):
            with bench.tracer.start_as_current_span("step") as step:
                bench.chat()
                bench.tool()
                step.set_attribute("openinference.span.kind", "CHAIN")
        run.set_attribute("openinference.span.kind", "CHAIN")
    bench.processor.shutdown()
    (turn,) = bench.turns
    assert (turn.agent, turn.iterations, turn.tool_calls, turn.repeats) == ("outer", 3, 3, 2)


def test_spans_of_no_interest_in_a_turn_opened_by_hand_leave_nothing_behind(bench):
    with hand_turn("outer", watch=bench.watch):
        for _ in range(3):
            with bench.tracer.start_as_current_span("SELECT"):
                pass
    assert not bench.processor._assembler._above.adopted
    assert not bench.processor._assembler._turns._of_trace


def test_a_call_counted_by_hand_is_not_counted_from_its_span(bench):
    def search(q):
        bench.tool()
        return "nothing"

    with hand_turn(agent="by-hand", watch=bench.watch) as turn:
        turn.call_tool("search", search, q=1)
        with turn.model_call("gpt-4o") as call:
            bench.chat()
            call.usage(input_tokens=10, output_tokens=1)
        assert (turn.iterations, turn.tool_calls) == (1, 1)
    assert len(bench.turns) == 1


def test_the_guard_of_a_turn_opened_by_hand_learns_of_a_loop_in_its_spans(bench):
    with hand_turn(agent="by-hand", watch=bench.watch, on_loop="stop") as turn:
        for _ in range(7):
            bench.chat()
            bench.tool()
        assert turn.state.verdict.severity == "stuck"
        with pytest.raises(Exception, match="search") as stopped:
            turn.call_tool("search", lambda q: "nothing", q=1)
        assert stopped.value.stop_reason == "loop_detected"


def test_an_exporter_beside_it_gets_every_span(bench):
    with bench.agent():
        bench.chat()
        bench.tool()
    assert len(bench.exporter.get_finished_spans()) == 3


def test_nothing_it_does_wrong_reaches_the_agent(bench, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr(bench.processor._assembler, "feed", broken)
    monkeypatch.setattr(bench.processor._assembler, "adopt", broken)
    with bench.agent():
        bench.tool()
    assert bench.faults() > 0
    bench.meter.counts.clear()


class Foreign:
    """A span that has what the SDK promises and nothing of what it is made of."""

    PROMISED = (
        "name", "context", "parent", "kind", "attributes", "events", "status", "start_time", "end_time", "resource",
        "instrumentation_scope",
    )  # fmt: skip

    def __init__(self, span):
        for name in self.PROMISED:
            setattr(self, name, getattr(span, name))


def test_spans_that_are_not_made_as_the_sdk_makes_them_count_the_same(bench):
    with bench.agent():
        bench.chat()
        bench.tool()
        with bench.tracer.start_as_current_span("GET /orders"):
            pass
    other = Bench()
    for span in bench.exporter.get_finished_spans():
        other.processor.on_end(Foreign(span))
    numbers = []
    for one in (bench, other):
        one.processor.shutdown()
        (turn,) = one.turns
        numbers.append((turn.agent, turn.tool_calls, turn.iterations, turn.usage, one.faults()))
        assert one.meter.total("turnwatch_spans_total") == 4
    assert numbers[0] == numbers[1]


def test_turns_of_tasks_and_threads_do_not_mix(bench):
    async def task(name):
        with bench.agent(name):
            for number in range(5):
                bench.tool(args=f'{{"q": {number}}}')
                await asyncio.sleep(0)

    async def tasks():
        await asyncio.gather(*(task(f"task-{number}") for number in range(5)))

    threads = [
        threading.Thread(target=lambda number=number: asyncio.run(task(f"thread-{number}"))) for number in range(5)
    ]
    for thread in threads:
        thread.start()
    asyncio.run(tasks())
    for thread in threads:
        thread.join()
    bench.processor.shutdown()
    assert len(bench.turns) == 10
    assert {(turn.tool_calls, turn.repeats) for turn in bench.turns} == {(5, 0)}


def test_a_second_processor_for_the_same_watch_counts_nothing(bench, caplog):
    second = TurnSpanProcessor(bench.watch)
    bench.provider.add_span_processor(second)
    with bench.agent():
        bench.chat()
        bench.tool()
    with hand_turn("by-hand", watch=bench.watch):
        bench.tool()
    second.shutdown()
    bench.processor.shutdown()
    assert [(turn.agent, turn.tool_calls) for turn in bench.turns] == [("bot", 1), ("by-hand", 1)]
    assert caplog.text.count("has two TurnSpanProcessors") == 1


def test_processors_for_two_watches_count_for_each(bench):
    other = Watch(Settings(), CountingMeter())
    second = TurnSpanProcessor(other)
    bench.provider.add_span_processor(second)
    with bench.agent():
        bench.tool()
    second.shutdown()
    bench.processor.shutdown()
    assert bench.meter.total("agent_tool_calls_total") == other.meter.total("agent_tool_calls_total") == 1


def test_spans_that_nobody_ends_are_let_go(bench):
    with hand_turn("bot", watch=bench.watch) as turn:
        lost = weakref.ref(bench.tracer.start_span("stream", attributes={"gen_ai.operation.name": "chat"}))
        state = weakref.ref(turn.state)
    del turn
    bench.turns.clear()
    gc.collect()
    assert lost() is None
    bench.tracer.start_span("another").end()
    gc.collect()
    assert state() is None


def test_an_agent_is_one_turn_however_many_spans_come_before_it_ends(bench, monkeypatch):
    monkeypatch.setattr("turnwatch.sources.spans.placing._REMEMBERED_SPANS", 10)
    with bench.agent("long"):
        bench.chat()
        for _ in range(20):
            with trace.use_span(trace.INVALID_SPAN), bench.agent("short"):
                bench.chat()
            bench.chat()
    bench.processor.shutdown()
    assert [turn.iterations for turn in bench.turns if turn.agent == "long"] == [21]
    assert [turn.stop_reason for turn in bench.turns if turn.agent == "long"] == ["final_answer"]
    assert len(bench.turns) == 21


def test_a_turn_ends_by_itself_after_its_grace():
    bench = Bench(grace_seconds=0.05)
    with bench.agent():
        bench.tool()
    for _ in range(100):
        if bench.turns[0].ended:
            break
        threading.Event().wait(0.05)
    assert bench.turns[0].stop_reason == "final_answer"
    bench.processor.shutdown()


def test_a_forked_child_counts_its_own_turns_only(bench):
    with bench.agent():
        bench.tool()
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)

        def child():
            del bench.turns[:]
            with trace.use_span(trace.INVALID_SPAN), bench.agent("child"):
                bench.tool()
            bench.processor.shutdown()
            sender.send([(turn.agent, turn.tool_calls) for turn in bench.turns])

        process = context.Process(target=child)
        process.start()
        assert receiver.poll(30)
        assert receiver.recv() == [("child", 1)]
        process.join(30)
        bench.tool()
    assert [(turn.agent, turn.tool_calls) for turn in bench.turns] == [("bot", 2)]


def test_unsampled_spans_are_said_not_to_be_seen(caplog):
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    processor = instrument(provider)
    assert "not sampled are not seen" in caplog.text
    processor.shutdown()


def test_settings_that_do_nothing_for_spans_are_named(monkeypatch, caplog):
    watch = Watch(Settings(on_loop="stop", agents={"coder": {"budgets": {"max_usd": 1.0}}}))
    monkeypatch.setattr("turnwatch.sources.spans.instrument.default_watch", lambda: watch)
    processor = instrument(TracerProvider(shutdown_on_exit=False))
    processor.shutdown()
    (line,) = caplog.messages
    assert line.startswith("on_loop, agents.coder.budgets: heeded where the agent runs under a guard")


def test_instrumenting_twice_is_instrumenting_once():
    provider = TracerProvider(shutdown_on_exit=False)
    processor = instrument(provider)
    assert instrument(provider) is processor
    processor.shutdown()


def test_a_port_that_is_taken_keeps_no_agent_from_starting(caplog):
    provider = TracerProvider(shutdown_on_exit=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        instrument(provider, port=port).shutdown()
    assert f"cannot serve metrics on 127.0.0.1:{port}: " in caplog.text


def test_instrumenting_twice_with_a_port_serves_once(monkeypatch):
    servers = []
    serve = outlet.start_metrics_server
    monkeypatch.setattr(outlet, "start_metrics_server", lambda port, host: servers.append(serve(port, host)))
    provider = TracerProvider(shutdown_on_exit=False)
    with kept_port() as port:
        processor = instrument(provider, port=port)
        try:
            assert instrument(provider, port=port) is processor
            assert len(servers) == 1
        finally:
            processor.shutdown()
            for server, thread in servers:
                server.shutdown()
                server.server_close()
                thread.join(10)

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextvars import Context

from opentelemetry import context, trace

import turnwatch as tw
from turnwatch.core.current_call import current_call, running
from turnwatch.core.events import ModelCall
from turnwatch.core.watch import Watch


def steps(agent: str, watch: Watch) -> Iterator[tw.Turn]:
    with tw.turn(agent, watch=watch) as turn:
        yield turn
        yield turn


def test_turns_left_in_another_order_than_entered_leave_the_turn_around_them_current():
    watch = Watch()
    with tw.turn("outer", watch=watch) as outer:
        first, second = steps("first", watch), steps("second", watch)
        next(first)
        inner = next(second)
        assert list(first)
        assert tw.current_turn() is inner
        assert list(second)
        assert tw.current_turn() is outer
    assert tw.current_turn() is None


def test_a_turn_left_in_another_context_takes_nothing_from_the_turn_that_is_current_there():
    watch = Watch()
    abandoned = steps("abandoned", watch)
    left = Context().run(next, abandoned)
    with tw.turn("here", watch=watch) as here:
        abandoned.close()
        assert left.stop_reason == "user_cancelled"
        assert tw.current_turn() is here
    assert tw.current_turn() is None


def test_a_turn_that_was_left_in_another_context_is_no_more_current_where_it_was_entered():
    watch = Watch()
    with tw.turn("outer", watch=watch) as outer:
        streaming = steps("streaming", watch)
        next(streaming)
        Context().run(streaming.close)
        assert tw.current_turn() is outer
        with tw.turn("next", watch=watch) as following:
            assert following.state.parent is outer.state
        assert tw.current_turn() is outer


def test_a_turn_that_is_entered_once_more_after_its_end_is_a_turn_of_its_own():
    watch = Watch()
    turn = tw.turn("again", watch=watch)
    with turn:
        turn.stop("error")
        first = turn.state
    with turn:
        with tw.turn("inside", watch=watch) as inside:
            pass
        assert tw.current_turn() is turn
    assert inside.state.parent is turn.state is not first
    assert (first.stop_reason, turn.stop_reason) == ("error", "final_answer")


def test_an_evicted_turn_can_be_entered_again_from_inside():
    with tw.turn("evicted", watch=Watch()) as turn:
        turn.state.end("evicted")
        with turn:
            assert tw.current_turn() is turn
        assert tw.current_turn() is turn
    assert tw.current_turn() is None


def test_a_turn_that_the_garbage_collector_ends_where_its_watch_is_at_work_ends():
    watch = Watch()

    def left_in_the_middle() -> None:
        streaming = steps("streaming", watch)
        next(streaming)
        cycle: list[object] = [streaming]
        cycle.append(cycle)

    def collect() -> None:
        left_in_the_middle()
        with watch.lock:
            gc.collect()

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert watch.agents["streaming"].open_turns == {}


def test_an_evicted_turn_is_current_again_after_the_turn_inside_it():
    watch = Watch()
    with tw.turn("evicted", watch=watch) as evicted:
        with tw.turn("inside", watch=watch):
            evicted.state.end("evicted")
        assert tw.current_turn() is evicted


def test_spans_of_turns_that_are_left_in_any_order_and_context_are_nobodys_parents(spans, caplog):
    watch = Watch()
    with tw.turn("outer", watch=watch):
        first, second = steps("first", watch), steps("second", watch)
        next(first)
        next(second)
        assert list(first)
        assert list(second)
        elsewhere = steps("elsewhere", watch)
        next(elsewhere)
        Context().run(elsewhere.close)
        with tw.turn("next", watch=watch):
            pass
    assert not trace.get_current_span().get_span_context().is_valid
    ended = {span.attributes["gen_ai.agent.name"]: span for span in spans.get_finished_spans()}
    assert ended["outer"].parent is None
    for agent in ("first", "elsewhere", "next"):
        assert ended[agent].parent == ended["outer"].context
    assert caplog.records == []


def test_a_span_that_is_left_current_in_a_turn_is_so_no_longer_after_it(spans):
    with tw.turn("outer", watch=Watch()):
        context.attach(trace.set_span_in_context(trace.get_tracer_provider().get_tracer("ours").start_span("left")))
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_call_left_in_another_context_takes_nothing_from_the_call_that_is_current_there():
    def streaming() -> Iterator[None]:
        with running(ModelCall("abandoned")):
            yield

    abandoned = streaming()
    Context().run(next, abandoned)
    here = ModelCall("here")
    with running(here):
        abandoned.close()
        assert current_call() is here
    assert current_call() is None


def test_a_turn_that_is_entered_once_more_inside_of_one_that_outlived_it_ends_as_any_other():
    watch = Watch()
    first, second = tw.turn("first", watch=watch), tw.turn("second", watch=watch)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with first:
        assert first.state.parent is second.state
        second.__exit__(None, None, None)
        assert tw.current_turn() is first
    assert tw.current_turn() is None


def test_a_turn_that_is_entered_in_two_places_at_once_leaves_none_open():
    watch = Watch()
    turn = tw.turn("shared", watch=watch)
    here, elsewhere = Context(), Context()
    here.run(turn.__enter__)
    before = turn.state
    elsewhere.run(turn.__enter__)
    assert (before.stop_reason, watch.faults) == ("unknown", 1)
    elsewhere.run(turn.__exit__, None, None, None)
    here.run(turn.__exit__, None, None, None)
    assert turn.stop_reason == "final_answer"

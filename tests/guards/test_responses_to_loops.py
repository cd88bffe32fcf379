from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import turnwatch as tw
from turnwatch.guards.nudge import nudge_text
from turnwatch.guards.responses import Steps, steps_of

KINDS = ("repeat", "stale_repeat", "cycle", "error_stall", "empty_results", "unknown_tool", "monologue", "window")


def run_stuck_agent(turn: tw.Turn, calls: int = 10) -> list[str | None]:
    """The model asks the same again and again; what it was told before each reply."""
    told: list[str | None] = []
    for _ in range(calls):
        told.append(turn.take_nudge())
        with turn.model_call("m"):
            pass
        turn.call_tool("search", lambda q: "nothing new", q="C-7841 hunter2")
    return told


def test_stop_ends_a_loop_at_its_fourth_call(watch):
    with pytest.raises(tw.LoopDetected) as stopped, tw.turn("a", watch=watch, on_loop="stop") as turn:
        run_stuck_agent(turn)
    assert turn.tool_calls == 4
    assert turn.stop_reason == stopped.value.stop_reason == "loop_detected"
    assert stopped.value.to_dict()["kind"] == "stale_repeat"
    assert stopped.value.to_dict()["detected_call"] == 4
    assert watch.value("agent_guard_stops_total", "a", "loop_detected") == 1


def test_a_stopped_turn_makes_no_further_call(watch):
    with tw.turn("a", watch=watch, on_loop="stop") as turn:
        with pytest.raises(tw.LoopDetected):
            run_stuck_agent(turn)
        with pytest.raises(tw.LoopDetected), turn.model_call("m"):
            pytest.fail("the call must not start")
        with pytest.raises(tw.LoopDetected):
            turn.call_tool("other", pytest.fail)
    assert turn.stop_reason == "loop_detected"
    assert watch.value("agent_guard_stops_total", "a", "loop_detected") == 1


def test_a_tools_own_exception_goes_first_and_the_next_call_is_refused(watch):
    ran = []

    def search() -> None:
        ran.append(1)
        raise ConnectionError("down")

    with tw.turn("a", watch=watch, on_loop="stop") as turn:
        for _ in range(3):
            with pytest.raises(ConnectionError):
                turn.call_tool("search", search)
        with pytest.raises(tw.LoopDetected):
            turn.call_tool("search", search)
    assert len(ran) == 3


async def test_coroutines_are_stopped_too(watch):
    async def search(q: str) -> str:
        return "nothing new"

    async with tw.turn("a", watch=watch, on_loop="stop") as turn:
        for _ in range(3):
            await turn.acall_tool("search", search, q="x")
        with pytest.raises(tw.LoopDetected):
            await turn.acall_tool("search", search, q="x")
    assert turn.tool_calls == 4


def test_observe_counts_what_stop_would_have_stopped(watch):
    with tw.turn("a", watch=watch) as turn:
        run_stuck_agent(turn)
    assert turn.stop_reason == "final_answer"
    assert watch.value("agent_guard_shadow_stops_total", "a", "loop_detected") == 1
    assert watch.total("agent_guard_stops_total") == 0


def test_a_nudge_is_given_once_and_the_next_repetition_stops(watch):
    with tw.turn("a", watch=watch, on_loop="nudge") as turn:
        assert run_stuck_agent(turn, 4) == [None] * 4
        told = turn.take_nudge()
        assert turn.take_nudge() is None
        with pytest.raises(tw.LoopDetected):
            run_stuck_agent(turn)
    assert turn.tool_calls == 5
    assert "search" in told
    assert "4 times" in told
    assert "hunter2" not in told


def test_a_nudged_turn_that_tries_another_way_goes_on(watch):
    with tw.turn("a", watch=watch, on_loop="nudge") as turn:
        run_stuck_agent(turn, 4)
        assert turn.take_nudge() is not None
        for number in range(10):
            with turn.model_call("m"):
                pass
            turn.call_tool("search", lambda q: f"{q} is a page of its own about {q * 7}", q=number)
    assert turn.stop_reason == "final_answer"


def test_parallel_calls_of_one_reply_do_not_stop_before_the_model_saw_the_nudge(watch):
    with tw.turn("a", watch=watch, on_loop="nudge") as turn:
        run_stuck_agent(turn, 4)
        for _ in range(3):
            turn.call_tool("search", lambda q: "nothing new", q="C-7841 hunter2")
        assert turn.take_nudge() is not None
        with pytest.raises(tw.LoopDetected):
            run_stuck_agent(turn, 1)


def test_page_tells_the_pager_and_lets_the_turn_go_on(watch):
    pages: list[tw.Page] = []
    with tw.turn("a", "c-17", watch=watch, on_loop="page", pager=pages.append) as turn:
        run_stuck_agent(turn)
    assert [(page.agent, page.tool, page.kind, page.severity, page.conversation_id) for page in pages] == [
        ("a", "search", "stale_repeat", "stuck", "c-17")
    ]
    assert turn.stop_reason == "final_answer"


def test_a_page_goes_out_with_the_step_that_follows_it(watch):
    pages: list[tw.Page] = []
    with (
        pytest.raises(tw.LoopDetected),
        tw.turn("a", watch=watch, on_loop=("page", "stop"), pager=pages.append) as turn,
    ):
        run_stuck_agent(turn)
    assert (turn.tool_calls, len(pages)) == (4, 1)


def test_a_page_with_nowhere_to_go_is_counted(watch):
    with tw.turn("a", watch=watch, on_loop="page") as turn:
        run_stuck_agent(turn)
    assert watch.value("turnwatch_internal_errors_total") == 1


def test_monologues_stop_before_the_next_call(watch):
    with tw.turn("a", watch=watch, on_loop="stop") as turn:
        for _ in range(3):
            turn.state.begin_model()
            call = tw.ModelCall("m", text=tw.Evidence.of("I will now look into the matter at once."))
            turn.state.guard.after_model(call, turn.state.end_model(call))
        with pytest.raises(tw.LoopDetected), turn.model_call("m"):
            pass


def poll(turn: tw.Turn, clock, answers: list[str]) -> None:
    for answer in answers:
        clock.now += 0.1
        turn.call_tool("poll_job", lambda job, answer=answer: answer, "j-1")


def test_a_poll_with_changing_results_goes_on(watch, clock):
    with tw.turn("a", watch=watch, on_loop="stop") as turn:
        poll(turn, clock, [f"{'I' * number} files of the job are done" for number in range(40)])
    assert turn.tool_calls == 40


def test_a_busy_poll_is_stopped(watch, clock):
    with tw.turn("a", watch=watch, on_loop="stop") as turn, pytest.raises(tw.LoopDetected):
        poll(turn, clock, ["running"] * 200)
    assert turn.tool_calls < 30


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_loop_has_words_without_placeholders(kind):
    text = nudge_text(tw.Verdict(kind, "stuck", "search", 1, 4, "reason", "full", (1, 2, 3, 4)))
    assert "{" not in text
    assert len(text) > 100


def test_a_tool_name_of_a_model_cannot_fill_the_nudge():
    verdict = tw.Verdict("stale_repeat", "stuck", "x\n" * 5_000, 1, 4, "reason", "full")
    assert len(nudge_text(verdict)) < 600


@pytest.mark.parametrize("on_loop", ["halt", (), ("stop", "halt"), None, 5, [["stop"]]])
def test_a_response_that_does_not_exist_is_refused(watch, on_loop):
    with pytest.raises(ValueError, match="on_loop"), tw.turn("a", watch=watch, on_loop=on_loop):
        pass


def test_a_nudge_is_followed_by_a_stop():
    assert steps_of("nudge") == ("nudge", "stop")
    steps = Steps(("page", "nudge", "page", "stop"))
    assert [steps.take() for _ in range(4)] == [("page", "nudge"), ("page", "stop"), ("stop",), ("stop",)]


def test_threads_take_the_steps_of_a_policy_one_after_another(watch, monkeypatch):
    """A step that two threads took at once would be two steps gone, the stop among them."""
    take, taking = Steps.take, threading.Lock()

    def alone(steps: Steps) -> tuple[str, ...]:
        assert taking.acquire(blocking=False), "another thread is taking a step"
        time.sleep(0.002)
        taken = take(steps)
        taking.release()
        return taken

    monkeypatch.setattr(Steps, "take", alone)
    verdict = tw.Verdict("stale_repeat", "stuck", "search", 1, 4, "reason", "full")
    pages: list[tw.Page] = []
    with tw.turn("a", watch=watch, on_loop=(*["observe"] * 7, "page", "stop"), pager=pages.append) as turn:
        stuck = turn.state.guard._stuck
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(stuck.respond, [verdict] * 7))
            assert (stuck.stop, pages) == (None, [])
            list(threads.map(stuck.respond, [verdict] * 7))
    assert isinstance(stuck.stop, tw.LoopDetected)
    assert len(pages) == 1


def test_a_pager_that_fails_keeps_back_no_stop(watch):
    def page(_: tw.Page) -> None:
        raise OSError("down")

    with pytest.raises(tw.LoopDetected), tw.turn("a", watch=watch, on_loop=("page", "stop"), pager=page) as turn:
        run_stuck_agent(turn)
    assert turn.tool_calls == 4
    assert watch.value("turnwatch_internal_errors_total") == 1

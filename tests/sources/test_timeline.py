"""Timelines: what came of each call, and that long turns and many turns take bounded memory."""

from __future__ import annotations

from typing import Any

from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.timeline import TimelineRecorder
from turnwatch.sources.totals import Totals


def listened() -> tuple[Watch, TimelineRecorder, Totals]:
    watch, recorder, totals = Watch(clock=lambda: 0.0), TimelineRecorder(), Totals()
    watch.listeners += (recorder, totals)
    return watch, recorder, totals


def call(turn: TurnState, tool: str, args: Any, result: str | None, **more: Any) -> None:
    event = ToolCall(tool, args, result=None if result is None else Evidence.of(result), **more)
    turn.begin_call(event)
    turn.end_call(event)


def test_every_call_is_marked_by_what_came_of_it():
    watch, recorder, _ = listened()
    turn = watch.open_turn("demo")
    call(turn, "status", {}, "waiting", started=10.0, ended=10.5)
    call(turn, "status", {}, "ready now")
    call(turn, "status", {}, "ready now")
    call(turn, "status", {}, None)
    call(turn, "delete", {}, "no such file", outcome="error")
    for _ in range(3):
        call(turn, "delete", {}, "no such file", outcome="error")
    call(turn, "list", {}, "a", outcome="cached")
    call(turn, "drop", {}, None, outcome="denied")
    call(turn, "read", {}, "Error: it is gone")
    turn.end()
    timeline = recorder.take(turn)
    assert timeline is not None
    marks = timeline.marks()
    assert [(mark.number, mark.kind, mark.repeats) for mark in marks] == [
        (1, "first", False),
        (2, "changed", False),
        (3, "same", True),
        (4, "unknown", False),
        (5, "error", False),
        (6, "error", True),
        (7, "error", True),
        (8, "error", True),
        (9, "cached", False),
        (10, "denied", False),
        (11, "error", False),
    ]
    assert (marks[0].at, marks[1].at, marks[0].result_size, marks[3].result_size) == (10.0, None, 7, None)
    assert marks[0].input_hash == watch.hash("status", {})
    assert recorder.take(turn) is None


def test_of_a_long_turn_the_beginning_the_loop_and_the_end_are_kept():
    watch, recorder, _ = listened()
    turn = watch.open_turn()
    for n in range(5_000):
        call(turn, "read", {"page": n}, f"page {n} says something of its own")
    for _ in range(6):
        call(turn, "find", {"text": "x"}, "not on this page")
    for n in range(5_000, 10_000):
        call(turn, "read", {"page": n}, f"page {n} says something of its own")
    turn.end()
    assert turn.verdict is not None
    timeline = recorder.take(turn)
    assert timeline is not None
    numbers = [mark.number for mark in timeline.marks()]
    assert timeline.calls == 10_006
    assert len(numbers) < 300
    assert {1, 2, turn.verdict.first_call, turn.verdict.detected_call, 10_006} <= set(numbers)


def test_turns_without_a_verdict_are_not_kept_and_too_many_open_ones_lose_theirs():
    watch, recorder, _ = listened()
    healthy = watch.open_turn()
    call(healthy, "read", {}, "text")
    healthy.end()
    assert recorder.take(healthy) is None
    turns = [watch.open_turn() for _ in range(1_100)]
    for turn in turns:
        for _ in range(4):
            call(turn, "find", {}, "nothing new at all")
    kept = [turn for turn in turns if recorder.take(turn) is not None]
    assert kept == turns[100:]


def test_totals_add_up_to_what_the_turns_say():
    watch, _, totals = listened()
    for agent, calls in (("one", 8), ("one", 1), ("two", 3)):
        turn = watch.open_turn(agent)
        for _ in range(calls):
            turn.begin_model()
            turn.end_model(ModelCall("gpt-4o", usage=Usage(1000, 10)))
            call(turn, "find", {"q": 1}, "nothing new at all")
        call(turn, "done", {}, "ok")
        turn.end()
    one, two, find = totals.agents["one"], totals.agents["two"], totals.tools["find"]
    assert (one.turns, one.stuck, one.warned, one.tool_calls, one.repeats) == (2, 1, 0, 11, 7)
    assert (two.turns, two.stuck, two.warned, two.iterations) == (1, 0, 1, 3)
    assert (find.calls, find.same, find.changed, find.errors, find.stuck_turns) == (12, 9, 0, 0, 1)
    assert sum(tool.wasted for tool in totals.tools.values()) == totals.all.wasted_tool_calls == 5
    assert totals.all.tokens == 12 * 1010
    assert totals.all.spend_usd == one.spend_usd + two.spend_usd > totals.all.wasted_usd > 0


def test_invented_names_are_added_up_as_others():
    watch, _, totals = listened()
    turn = watch.open_turn()
    for n in range(3_000):
        call(turn, f"tool_{n}", {}, "x")
    assert len(totals.tools) == 2_001
    assert totals.tools["__other__"].calls == 1_000

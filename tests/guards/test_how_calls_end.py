"""Calls that are begun and ended apart, by hand or by hooks: how often, how long, and how patiently."""

from __future__ import annotations

import pytest

import turnwatch as tw
from turnwatch.core.watch import Watch
from turnwatch.guards.frameworks.reported import ReportedTurn
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings
from turnwatch.sources.hand import Turn


class Bench:
    """A watch with a clock of the test's own."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.store = Store()
        settings = Settings(tools={"overrides": {"get_job_status": {"polling": True}}})
        self.watch = Watch(settings, self.store, clock=lambda: self.now)

    def opened(self, way: str, **guarding) -> Turn | ReportedTurn:
        if way == "hand":
            return tw.turn("bot", watch=self.watch, **guarding).open()
        return ReportedTurn("bot", watch=self.watch, **guarding)

    def calls(self) -> dict[str, float]:
        cells = self.store.counters["agent_tool_calls_total"].items()
        return {outcome: cell.value for (_, _, outcome), cell in cells if cell.value}

    def seconds(self) -> list[tuple[int, float]]:
        cells = self.store.histograms.get("agent_tool_call_duration_seconds", {}).values()
        return [(sum(cell.counts), cell.total) for cell in cells]


@pytest.fixture
def bench() -> Bench:
    return Bench()


WAYS = pytest.mark.parametrize("way", ["hand", "hooks"])


@WAYS
def test_what_is_told_of_a_call_first_counts(bench: Bench, way: str):
    turn = bench.opened(way)
    call = turn.begin_tool("search", {"q": 1})
    call.returned("rows")
    call.returned("rows")
    call.failed(ValueError())
    turn.begin_tool("search", {"q": 2}).failed(ValueError())
    assert bench.calls() == {"ok": 1, "error": 1}


def test_a_loop_that_is_stopped_at_its_result_counts_that_call_once(bench: Bench):
    turn = bench.opened("hooks", on_loop="stop")

    def loop() -> None:
        for _ in range(20):
            with turn.tool_call("search", {"q": 1}) as running:
                running.returned("nothing")

    with pytest.raises(tw.LoopDetected):
        loop()
    assert bench.calls() == {"ok": turn.state.tool_calls}


@WAYS
def test_a_poll_that_waits_between_its_calls_is_no_loop(bench: Bench, way: str):
    turn = bench.opened(way)
    for _ in range(12):
        call = turn.begin_tool("get_job_status", {"job": 1})
        bench.now += 0.5
        call.returned('{"status": "running"}')
        bench.now += 30
    assert turn.state.verdict is None
    assert bench.seconds() == [(12, 6.0)]


def test_of_a_call_that_is_told_of_when_it_is_over_no_duration_is_known(bench: Bench):
    turn = bench.opened("hooks")
    for _ in range(12):
        turn.begin_tool("get_job_status", {"job": 1}, is_over=True).returned('{"status": "running"}')
        bench.now += 30
    assert turn.state.verdict is None
    assert bench.seconds() == []


def test_of_a_call_that_is_never_answered_no_duration_is_known(bench: Bench):
    call = bench.opened("hooks").begin_tool("extract", {"a": 1})
    bench.now += 600
    call.unanswered()
    assert (bench.calls(), bench.seconds()) == ({"ok": 1}, [])

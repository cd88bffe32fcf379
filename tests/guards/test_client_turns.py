"""The turns of a wrapped client, as its requests and replies tell of them."""

from __future__ import annotations

import pytest

from turnwatch.core.watch import Watch
from turnwatch.guards.frameworks.client_turns import GIVEN_UP_SECONDS, ClientTurns
from turnwatch.guards.frameworks.wire_formats import format_of
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings

CHAT = format_of("/chat/completions")


class Bench:
    """A client's turns, with a clock of the test's own."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.store = Store()
        self.watch = Watch(Settings(), self.store, clock=lambda: self.now)
        self.turns = ClientTurns("extractor", None, self.watch, {})

    def ask(self, *messages: dict[str, str], wants: str | None) -> None:
        begun = self.turns.begin(CHAT, {"model": "gpt-4o-mini", "messages": [{"role": "user"}, *messages]})
        calls = [{"id": wants, "function": {"name": "extract", "arguments": '{"a": 1}'}}] if wants else []
        self.turns.replied(begun.turn, begun.call, {"choices": [{"message": {"content": "…", "tool_calls": calls}}]})

    def gauge(self, name: str) -> float:
        return max(value for gauge, _, value in self.watch.gauges() if gauge == name)

    def counted(self, name: str) -> dict[tuple[str, ...], float]:
        return {labels: cell.value for labels, cell in self.store.counters[name].items() if cell.value}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_turn_whose_tools_are_never_answered_ends_as_time_passes(bench: Bench):
    bench.ask(wants="call_1")
    bench.now += 60
    bench.ask(wants="call_2")
    assert bench.gauge("agent_open_turns") == 2

    bench.now += GIVEN_UP_SECONDS - 60
    assert bench.gauge("agent_open_turns") == 1
    bench.now += 60
    assert bench.gauge("agent_open_turns") == 0
    assert bench.counted("agent_turns_total") == {("extractor", "unknown"): 2}
    assert bench.counted("agent_tool_calls_total") == {("extractor", "extract", "ok"): 2}


def test_a_turn_whose_tools_take_their_time_goes_on(bench: Bench):
    bench.ask(wants="call_1")
    bench.now += GIVEN_UP_SECONDS - 1
    bench.ask({"role": "tool", "tool_call_id": "call_1", "content": "done"}, wants="call_2")
    bench.now += GIVEN_UP_SECONDS - 1
    assert bench.gauge("agent_open_turns") == 1
    bench.ask({"role": "tool", "tool_call_id": "call_2", "content": "done"}, wants=None)
    assert bench.counted("agent_turns_total") == {("extractor", "final_answer"): 1}


def test_a_result_that_comes_when_its_turn_was_given_up_begins_another(bench: Bench):
    bench.ask(wants="call_1")
    bench.now += GIVEN_UP_SECONDS
    assert bench.gauge("agent_open_turns") == 0
    bench.ask({"role": "tool", "tool_call_id": "call_1", "content": "done"}, wants=None)
    assert bench.counted("agent_turns_total") == {("extractor", "unknown"): 1, ("extractor", "final_answer"): 1}
    assert not bench.counted("turnwatch_internal_errors_total")

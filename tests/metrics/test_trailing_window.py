"""The trailing-window gauges, as the exporter shows them, against a plain list of timestamps."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.metrics.prometheus import StoreCollector
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings

WINDOW, BUCKET = 300.0, 5.0

steps = st.lists(
    st.tuples(
        st.floats(0, 120),  # seconds since the step before
        st.integers(0, 2),  # which turn
        st.sampled_from("ab"),  # which call
        st.booleans(),  # whether that turn ends after it
    ),
    min_size=1,
    max_size=60,
)


@pytest.mark.untraced
@given(steps, st.floats(0, 400))
def test_identical_calls_agree_with_a_list_of_timestamps(
    script: list[tuple[float, int, str, bool]], later: float
) -> None:
    now = 0.0
    store = Store()
    watch = Watch(Settings(), store, clock=lambda: now)
    registry = CollectorRegistry()
    registry.register(StoreCollector(store, lambda: watch))
    turns: dict[int, TurnState] = {}
    log: list[tuple[int, str, float]] = []
    identity = 0
    identities: dict[int, int] = {}
    for seconds, slot, key, ends in script:
        now += seconds
        if slot not in turns:
            identity += 1
            turns[slot], identities[slot] = watch.open_turn("bot"), identity
        turns[slot].record("search", key)
        log.append((identities[slot], key, now))
        if ends:
            turns.pop(slot).end()
    now += later

    def largest(reach: float) -> int:
        counts = Counter((turn, key) for turn, key, at in log if at + reach > now)
        return max(counts.values(), default=0)

    shown = registry.get_sample_value("agent_turn_identical_calls_max", {"agent": "bot", "tool": "search"})
    assert shown is not None
    assert largest(WINDOW) <= shown <= largest(WINDOW + BUCKET)


@pytest.mark.untraced
@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 2)), min_size=1, max_size=60), st.floats(0, 400))
def test_iterations_of_active_turns_agree_with_a_list(script: list[tuple[float, int]], later: float) -> None:
    now = 0.0
    store = Store()
    watch = Watch(Settings(), store, clock=lambda: now)
    registry = CollectorRegistry()
    registry.register(StoreCollector(store, lambda: watch))
    turns = [watch.open_turn("bot") for _ in range(3)]
    last: dict[int, tuple[int, float]] = {}
    for seconds, slot in script:
        now += seconds
        turns[slot].begin_model()
        last[slot] = (turns[slot].iterations, now)
    now += later
    expected = max((count for count, at in last.values() if at + WINDOW > now), default=0)
    assert registry.get_sample_value("agent_turn_iterations_max", {"agent": "bot"}) == expected

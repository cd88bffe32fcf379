"""What a tool call through the gateway costs, beside recording the same call alone.

    python bench/guard_cost.py

Recorded: ``turn.call_tool`` of a turn without a guard: hash, counts, windows, metrics, result evidence, loop engine.
Guarded: ``gateway.call`` on a cache miss, in a turn with limits, kill flags and ``on_loop: stop``: all of that, and
the guard, the lookups, the kept result, the circuit breaker and the scratchpad. Both in the same run, round about,
processor time, best of the rounds each, so the ratio holds on a slow or busy machine.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import turnwatch as tw
from turnwatch.metrics.store import Store

ROUNDS, CALLS = 15, 400
LIMITS = tw.Limits(max_iterations=10**9, max_tool_calls=10**9, max_seconds=10**9, max_usd=1e9, max_tokens=10**12)


def search(customer_id: str, limit: int, note: str) -> str:
    """A tool that does nothing, so that only what is around it is measured."""
    return f"order {customer_id} of {limit}: {note}"


def arguments(number: int) -> dict[str, object]:
    """About 200 bytes, different for every call."""
    return {"customer_id": f"C-{number:06d}", "limit": number, "note": "n" * 120}


def seconds_a_call(call: Callable[[int], object], numbers: itertools.count[int]) -> float:
    """Of one round."""
    chosen = list(itertools.islice(numbers, CALLS))
    started = time.thread_time()
    for number in chosen:
        call(number)
    return (time.thread_time() - started) / CALLS


def main() -> None:
    """Print one table."""
    watch = tw.Watch(tw.Settings(spans=False), Store())
    numbers = itertools.count()
    gateway = tw.ToolGateway(impls={"search_orders": search}, watch=watch)
    recorded: list[float] = []
    guarded: list[float] = []
    again: list[float] = []
    for _ in range(ROUNDS):
        with tw.turn("bench", watch=watch) as turn:
            turn.state.guard = None
            recorded.append(
                seconds_a_call(lambda n, turn=turn: turn.call_tool("search_orders", search, **arguments(n)), numbers)
            )
        with tw.turn("bench", watch=watch, limits=LIMITS, on_loop="stop"):
            guarded.append(seconds_a_call(lambda n: gateway.call("search_orders", arguments(n)), numbers))
        with tw.turn("bench", watch=watch, limits=LIMITS):
            again.append(seconds_a_call(lambda _: gateway.call("search_orders", arguments(0)), numbers))
    base, miss, hit = min(recorded), min(guarded), min(again)
    print(f"{'':28} {'us a call':>9} {'ratio':>6}")
    print(f"{'recorded alone':28} {base * 1e6:9.1f} {1:6.2f}")
    print(f"{'guarded, cache miss':28} {miss * 1e6:9.1f} {miss / base:6.2f}")
    print(f"{'guarded, answered again':28} {hit * 1e6:9.1f} {hit / base:6.2f}")


if __name__ == "__main__":
    main()

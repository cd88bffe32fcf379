"""What recording one tool call costs, beside the floor that any hash of its arguments has to pay.

    python bench/call_cost.py

Floor: ``hashlib.sha256(orjson.dumps(arguments, option=OPT_SORT_KEYS)).hexdigest()``. Recorded: input hash,
counts, windows, all metrics of the call, result evidence and the loop engine. By turns in the same run, each for less
than a time slice, and the best of the rounds in processor time, so that the ratio holds on a slow or busy machine.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import orjson

from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings

ROUNDS, CALLS = 60, 250


def arguments(size: int, number: int) -> dict[str, object]:
    """Flat arguments of about this many bytes, different for every number."""
    return {"customer_id": f"C-{number:06d}", "limit": 25, "open": True, "note": "n" * (size - 70), "page": number}


def microseconds(function: Callable[[], None]) -> float:
    """Processor time of one call, once."""
    start = time.process_time()
    function()
    return (time.process_time() - start) / CALLS * 1e6


def main() -> None:
    """Print one table."""
    print(
        f"{'arguments':>10} {'repeat':>7} {'floor us':>9} {'count us':>9} {'ratio':>6} {'judged us':>10} {'ratio':>6}"
    )
    for size in (200, 10_000):
        for repeating in (False, True):
            calls = [arguments(size, 0 if repeating else number) for number in range(CALLS)]

            def floor(calls: list[dict[str, object]] = calls) -> None:
                for args in calls:
                    hashlib.sha256(orjson.dumps(args, option=orjson.OPT_SORT_KEYS)).hexdigest()

            def count(calls: list[dict[str, object]] = calls) -> None:
                turn = Watch(Settings(), Store()).open_turn("bench")
                for args in calls:
                    turn.begin_call(ToolCall("search_orders", args))

            def judge(calls: list[dict[str, object]] = calls) -> None:
                turn = Watch(Settings(), Store()).open_turn("bench")
                for number, args in enumerate(calls):
                    call = ToolCall("search_orders", args)
                    turn.begin_call(call)
                    call.result = Evidence.of(f"{number} orders found")
                    turn.end_call(call)

            rounds = [[microseconds(function) for function in (floor, count, judge)] for _ in range(ROUNDS)]
            base, counted, judged = (min(column) for column in zip(*rounds, strict=True))
            print(
                f"{size:>8} B {'yes' if repeating else 'no':>7} {base:>9.2f} {counted:>9.2f} "
                f"{counted / base:>5.1f}x {judged:>10.2f} {judged / base:>5.1f}x"
            )


if __name__ == "__main__":
    main()

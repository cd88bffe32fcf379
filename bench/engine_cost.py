"""What judging one tool call costs beside the floor of hashing it, and whether that grows with the turn.

    python bench/engine_cost.py

A call has 200 bytes of arguments and a result of 2 KB. Floor: canonical JSON (``json.dumps`` with sorted keys and
no white space) and SHA-256 of arguments and result. Engine: input hash, evidence of the result, and the verdict.
Turn: the whole of ``begin_call`` and ``end_call``, metrics included. All in the same process and by turns, in
processor time, the best of the rounds, so that the ratios hold on a busy machine. Last, how fast a result is compared
that differs from the one before (normalised text and simhash), for words met before and for words met first.
"""

from __future__ import annotations

import gc
import hashlib
import json
import random
import string
import time
from collections.abc import Callable

from turnwatch.core.engine import Engine
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.hashing import input_hash
from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings

ROUNDS, CALLS = 7, 2_000
CHECKPOINTS = (10, 100, 1_000, 10_000, 100_000)
_RANDOM = random.Random(1)
_WORDS = ["".join(_RANDOM.choices(string.ascii_lowercase, k=_RANDOM.randint(2, 9))) for _ in range(500)]

Call = tuple[str, dict[str, object], str]


def text(size: int) -> str:
    """About this many characters of words."""
    return " ".join(_RANDOM.choices(_WORDS, k=size // 6))[:size]


def calls_of(tool: str, *, repeating: bool) -> list[Call]:
    """Calls of one tool, all different or all alike."""
    calls: list[Call] = []
    for number in range(CALLS):
        args = {"query": text(90), "path": f"/src/{text(40)}", "limit": number, "all": True, "note": text(25)}
        calls.append((tool, args, f"{text(2_000)} {number}"))
    return [calls[0]] * CALLS if repeating else calls


def floor(calls: list[Call]) -> None:
    """The least that a detector with results has to do."""
    for _, args, result in calls:
        hashlib.sha256(json.dumps(args, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        hashlib.sha256(json.dumps(result).encode()).hexdigest()


def judge(calls: list[Call], engine: Engine | None = None) -> None:
    """Hash, evidence and verdict."""
    engine = engine or Engine()
    for tool, args, result in calls:
        engine.observe(ToolCall(tool, args, input_hash=input_hash(tool, args), result=Evidence.of(result)))


def record(calls: list[Call]) -> None:
    """What a live turn does for each call."""
    turn = Watch(Settings(), Store()).open_turn("bench")
    for tool, args, result in calls:
        call = ToolCall(tool, args)
        turn.begin_call(call)
        call.result = Evidence.of(result)
        turn.end_call(call)


def seconds(function: Callable[[list[Call]], None], calls: list[Call]) -> float:
    """Seconds of processor time a call, once."""
    start = time.process_time()
    function(calls)
    return (time.process_time() - start) / len(calls)


def ratios() -> None:
    """Print the cost of each kind of call."""
    print(f"{'calls':<28} {'floor us':>9} {'engine us':>10} {'ratio':>6} {'turn us':>9} {'ratio':>6}")
    for name, tool, repeating in [
        ("different, a named tool", "search_docs", False),
        ("different, a shell", "bash", False),
        ("identical, a named tool", "search_docs", True),
    ]:
        calls = calls_of(tool, repeating=repeating)
        rounds = [[seconds(function, calls) * 1e6 for function in (floor, judge, record)] for _ in range(ROUNDS)]
        base, judged, recorded = (min(column) for column in zip(*rounds, strict=True))
        print(
            f"{name:<28} {base:>9.2f} {judged:>10.2f} {judged / base:>5.1f}x {recorded:>9.2f} {recorded / base:>5.1f}x"
        )


def flatness() -> None:
    """Print what a call costs after so many others in one turn."""
    engine = Engine()
    batch = calls_of("search_docs", repeating=False)[:10]
    done = 0
    print(f"\n{'after calls':>12} {'engine us':>10} {'questions':>10}")
    for checkpoint in CHECKPOINTS:
        while done < checkpoint:
            judge([(f"tool{done % 40}", {"n": done}, f"result {done}")], engine)
            done += 1
        fresh = [
            [(tool, {**args, "at": f"{done} {number}"}, result) for tool, args, result in batch] for number in range(50)
        ]
        took = min(seconds(lambda calls: judge(calls, engine), calls) for calls in fresh) * 1e6
        print(f"{checkpoint:>12,} {took:>10.2f} {engine.remembered:>10,}")


def comparing() -> None:
    """Print how many megabytes of results a second are normalised and given a simhash."""
    print(f"\n{'results of 800 characters':<28} {'MB/s':>6}")
    known = [f"{text(790)} {number}" for number in range(500)]
    first = [" ".join("".join(_RANDOM.choices(string.ascii_lowercase, k=6)) for _ in range(114)) for _ in range(500)]
    for name, results in [("words met before", known), ("words met first", first)]:
        took = []
        for _ in range(ROUNDS if results is known else 1):
            start = time.process_time()
            for result in results:
                _ = Evidence.of(result).simhash
            took.append(time.process_time() - start)
        print(f"{name:<28} {sum(map(len, results)) / min(took) / 1e6:>6.1f}")


if __name__ == "__main__":
    gc.disable()
    ratios()
    flatness()
    comparing()

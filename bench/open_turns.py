"""What 100,000 turns take in memory while they are open, as the receiver holds them.

    python bench/open_turns.py [TURNS]

Each turn is one trace whose agent has not ended yet: a model call and a tool call have. Aim: 400 MB for 100,000,
and past the bound the oldest is evicted and counted.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store
from turnwatch.settings import Bounds, Settings
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.span import SpanData

SECOND = 1_000_000_000
SCOPE = "my.agent"


def resident_mb() -> float:
    """Resident memory of this process."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def spans_of(turn: int) -> Iterator[SpanData]:
    """The two ended spans of one open turn."""
    agent = turn * 10 + 1
    yield SpanData(
        turn + 1,
        agent + 1,
        agent,
        "chat gpt-4o",
        scope=SCOPE,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 10,
        },
        start_ns=turn * 1000,
        end_ns=turn * 1000 + 400,
    )
    yield SpanData(
        turn + 1,
        agent + 2,
        agent,
        "execute_tool search",
        scope=SCOPE,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.arguments": f'{{"query": "{turn}"}}',
            "gen_ai.tool.call.result": f"result {turn}",
        },
        start_ns=turn * 1000 + 500,
        end_ns=turn * 1000 + 900,
    )


def main() -> None:
    """Print one line of memory and one of eviction."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    # The first turn imports what turns need, which is no turn's memory.
    first = Assembler(Watch(Settings(), Store()), settle_seconds=1.0)
    first.feed(spans_of(0), 0.0)
    first.flush()
    store = Store()
    watch = Watch(Settings(bounds=Bounds(open_turns=turns)), store)
    assembler = Assembler(watch, settle_seconds=1.0)
    gc.collect()
    before = resident_mb()
    for turn in range(turns):
        assembler.feed(spans_of(turn), 0.0)
    assembler.tick(5.0)  # nothing came above these calls: each trace is a turn of its own, still open
    gc.collect()
    took = resident_mb() - before
    print(f"{assembler.open_turns} open turns: {took:.0f} MB, {took * 1024 / turns:.1f} KB each")
    for turn in range(turns, turns + 100):
        assembler.feed(spans_of(turn), 6.0)
    assembler.tick(12.0)
    evicted = sum(cell.value for cell in store.counters.get("turnwatch_turns_evicted_total", {}).values())
    print(f"100 more: {assembler.open_turns} open, evicted and counted: {evicted:.0f}")


if __name__ == "__main__":
    main()

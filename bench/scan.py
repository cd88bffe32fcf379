"""How fast scan reads files of spans, beside plain ``orjson.loads`` of the same lines in the same run.

    python bench/scan.py [--megabytes 40]

- parsed: ``orjson.loads`` of every line, and nothing else.
- read: parsed, and every span that plays a part with its attributes in Python objects; of the others ids and times.
- scanned: all that ``turnwatch scan --json`` does but print: put in order, put turns together, hash, count, judge.

Processor time, best of the rounds. bench/inputs/spans_file.py writes the files: of a shop, where every tenth request
asks an agent, and of agents only, whose spans carry their messages.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from inputs.spans_file import lines

from turnwatch.cli.scan import COLLECT_AFTER
from turnwatch.sources.scan import ScannedTurn, scan
from turnwatch.sources.spans.files import read_file

ROUNDS = 3


def parsed(file: Path) -> int:
    """How many lines there are."""
    with file.open("rb") as stream:
        return sum(orjson.loads(line) is not None for line in stream)


def read(file: Path) -> int:
    """How many spans there are."""
    return sum(len(each.spans) + len(each.passing) for each in read_file(file, "otlp-json"))


def scanned(file: Path) -> int:
    """How many turns there are."""
    return sum(isinstance(item, ScannedTurn) for item in scan([file]))


def _seconds(work: Callable[[Path], int], file: Path) -> float:
    began = time.process_time()
    assert work(file)
    return time.process_time() - began


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=40)
    options = parser.parse_args()
    gc.set_threshold(*COLLECT_AFTER)
    print(f"{'file':>12} {'parsed':>11} {'read':>17} {'scanned':>17}")
    with tempfile.TemporaryDirectory() as folder:
        for name, only_agents in (("shop", False), ("agents only", True)):
            file = Path(folder) / "spans.jsonl"
            with file.open("wb") as stream:
                stream.writelines(lines(options.megabytes, only_agents=only_agents))
            size = file.stat().st_size / 1e6
            # In turns, so that a busy moment of the machine does not fall on one of them only.
            rounds = [[_seconds(work, file) for work in (parsed, read, scanned)] for _ in range(ROUNDS)]
            plain, in_python, whole = (min(times) for times in zip(*rounds, strict=True))
            print(
                f"{name:>12} {size / plain:>6.0f} MB/s {size / in_python:>6.0f} MB/s {in_python / plain:>4.1f}x "
                f"{size / whole:>6.0f} MB/s {whole / plain:>4.1f}x"
            )


if __name__ == "__main__":
    main()

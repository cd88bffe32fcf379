"""One table: every rule against the labels, its harm on successful runs, its lag, and what it saves."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import median

from bench.quality.recordings import Recording, read_folder
from bench.quality.rules import RULES, Rule, Stop


class Score:
    """What one rule does on a set of recordings."""

    def __init__(self, recordings: list[Recording], rule: Rule) -> None:
        self.stops: dict[str, Stop | None] = {one.trajectory_id: rule(one) for one in recordings}
        read = [one for one in recordings if one.stuck is not None]
        self.true_positives = sum(1 for one in read if one.stuck and self._fires(one))
        self.positives = sum(1 for one in read if one.stuck)
        self.fired_on_read = sum(1 for one in read if self._fires(one))
        exact = [one for one in read if one.exact_loop and one.stuck]
        self.exact, self.exact_found = len(exact), sum(map(self._fires, exact))
        self.wrong = [one.trajectory_id for one in read if self._fires(one) != one.stuck]
        self.harm: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for one in recordings:
            if one.success:
                stopped, runs = self.harm[one.source]
                self.harm[one.source] = (stopped + self._fires(one), runs + 1)
        lags = [stop.detected - stop.first + 1 for one in read if one.stuck and (stop := self._stop(one))]
        self.lag = median(lags) if lags else None
        self.calls_saved = self.tokens_saved = 0
        self.dollars_saved = 0.0
        for one in recordings:
            stop = self._stop(one)
            if stop is not None and not one.success:
                after = stop.detected + 1
                self.calls_saved += len(one.tokens[after:])
                self.tokens_saved += sum(one.tokens[after:])
                self.dollars_saved += sum(one.dollars[after:])

    def _stop(self, one: Recording) -> Stop | None:
        return self.stops[one.trajectory_id]

    def _fires(self, one: Recording) -> bool:
        return self._stop(one) is not None

    @property
    def precision(self) -> float:
        """Of the labelled runs on which it fires, the share that is stuck."""
        return self.true_positives / self.fired_on_read if self.fired_on_read else 0.0

    @property
    def recall(self) -> float:
        """Of the runs labelled stuck, the share on which it fires."""
        return self.true_positives / self.positives if self.positives else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of the two."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def exact_recall(self) -> float:
        """Of the runs labelled exact loops, the share on which it fires."""
        return self.exact_found / self.exact if self.exact else 0.0

    @property
    def stopped_successes(self) -> tuple[int, int]:
        """Successful runs that it would have stopped, of all successful runs."""
        return sum(stopped for stopped, _ in self.harm.values()), sum(runs for _, runs in self.harm.values())


def table(recordings: list[Recording], rules: dict[str, Rule]) -> tuple[str, dict[str, Score]]:
    """The scores of all rules as one Markdown table."""
    scores = {name: Score(recordings, rule) for name, rule in rules.items()}
    sources = sorted({source for score in scores.values() for source in score.harm})
    head = ["rule", "P", "R", "F1", "exact loops", "lag (calls)", "calls saved", "tokens saved", "$ saved"]
    head += [f"stops successes: {source}" for source in ["all", *sources]]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, score in scores.items():
        cells = [
            name,
            f"{score.precision:.2f}",
            f"{score.recall:.2f}",
            f"{score.f1:.2f}",
            f"{score.exact_found}/{score.exact}",
            "-" if score.lag is None else f"{score.lag:g}",
            f"{score.calls_saved}",
            f"{score.tokens_saved:,}",
            f"{score.dollars_saved:.2f}",
        ]
        cells += [_share(score.stopped_successes), *(_share(score.harm[source]) for source in sources)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines), scores


def _share(part: tuple[int, int]) -> str:
    stopped, runs = part
    return f"{stopped}/{runs} ({stopped / runs:.1%})" if runs else "-"


def main() -> None:
    """Measure the rules on a folder of trajectories."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="trajectories as *.jsonl or *.jsonl.gz, labels as labels*.jsonl")
    parser.add_argument("--wrong", action="store_true", help="name the labelled runs on which the engine is wrong")
    parser.add_argument("--leave-one-out", action="store_true", help="choose thresholds without each source in turn")
    parser.add_argument("--ranges", action="store_true", help="move each threshold alone through its range")
    options = parser.parse_args()
    recordings, broken = read_folder(options.folder)
    read = [one for one in recordings if one.stuck is not None]
    print(
        f"{len(recordings)} trajectories, {sum(len(one.tokens) for one in recordings)} calls, {len(read)} labelled "
        f"({sum(1 for one in read if one.stuck)} stuck), {broken} lines not read\n"
    )
    if options.leave_one_out:
        from bench.quality.leave_one_out import report

        print(report(recordings))
        return
    if options.ranges:
        from bench.quality.ranges import report as report_ranges

        print(report_ranges(recordings))
        return
    text, scores = table(recordings, RULES)
    print(text)
    if options.wrong:
        print("\nwrong:", *scores["turnwatch"].wrong, sep="\n")


if __name__ == "__main__":
    main()

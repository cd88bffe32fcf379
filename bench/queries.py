"""How long each query of panels and rules takes a real Prometheus over the data of a fleet.

    python bench/queries.py [--agents 20] [--tools 10] [--models 2] [--replicas 1] [--recording] [--bound 200]

Every metric of the catalogue with every label value, sampled each half minute, as blocks that promtool makes: four
hours of each, and of a metric that some query looks back on for longer (AgentSpendGrowth: 16 days), as long as that.
A panel is asked over the time that its dashboard opens with, every variable at All, in the steps that Grafana would
take; a rule at the end. With --recording the pack is asked with recording rules, too, and the bound is for that one;
what they would have written is in the data.

Time: the smaller of wall time over loopback and Prometheus' own processor time (so that a busy machine is not held
against a query), best of three. The slowest are printed; exits with 1 when one is over the bound.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import yaml

from turnwatch.demo.loopback import get
from turnwatch.demo.servers import running_prometheus
from turnwatch.metrics.catalogue import BY_NAME, CATALOGUE, CLOSED_LABELS, Metric
from turnwatch.pack.check_dashboards import filled_in, panels_of
from turnwatch.pack.render import RULES_FILE, render

SCRAPE_SECONDS = 30
BLOCK_SECONDS = 54 * 3600
"""Prometheus' own blocks grow to this length (2 h, three times threefold)."""
SHORT_BLOCK_SECONDS = 2 * 3600
ROUND_SECONDS = (10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600)
SHORTEST_SECONDS = 4 * 3600
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
ROUNDS = 3
GOES_WRONG = ("identical", "stale", "duplicate", "wasted", "loops", "stops", "exceeded", "warnings")
BORN_WITH_FIRST_EVENT = ("loops", "wasted_tool_calls", "stops", "warnings")
"""Counters that the exporter has no series of where nothing happened."""
CLOSED = {
    **CLOSED_LABELS,
    # What one fleet has at a time: of every value, series would be three times as many as anybody's.
    "outcome": ("ok", "error"),
    "stop_reason": ("final_answer", "max_iterations", "error", "loop_detected"),
    "kind": ("stale_repeat",),
    "severity": ("stuck", "warn"),
    "limit": ("max_usd",),
    "verdict": ("met",),
}


class Question(NamedTuple):
    """A query, where it stands, and over how many seconds it is asked (0: at one moment) in which steps."""

    place: str
    expr: str
    seconds: int
    step: int


def questions(pack: Path) -> Iterator[Question]:
    """Every query of the pack in this folder."""
    for path in sorted((pack / "dashboards").glob("*.json")):
        dashboard = json.loads(path.read_text("utf-8"))
        shown = seconds_of(dashboard["time"]["from"].removeprefix("now-"))
        for panel in panels_of(dashboard):
            step = step_of(shown, panel["maxDataPoints"])
            interval = f"{max(4 * SCRAPE_SECONDS, step + SCRAPE_SECONDS)}s"
            variables = {"__rate_interval": interval, "__range": f"{shown}s"}
            for target in panel["targets"]:
                expr = filled_in(target["expr"], variables)
                yield Question(f"{path.stem}: {panel['title']}", expr, shown if target["range"] else 0, step)
    for group in yaml.safe_load((pack / RULES_FILE).read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            severity = rule.get("labels", {}).get("severity", "")
            yield Question(f"rule: {rule.get('alert') or rule['record']} {severity}", rule["expr"], 0, 0)


def seconds_of(duration: str) -> int:
    """Seconds of a PromQL duration with one unit."""
    return int(duration[:-1]) * UNITS[duration[-1]]


def step_of(seconds: int, points: int) -> int:
    """The step that Grafana takes for so many points: a round one near to it, and no shorter than a scrape."""
    wanted = seconds / points
    return max(SCRAPE_SECONDS, min(ROUND_SECONDS, key=lambda step: abs(step - wanted)))


def looked_back_on(asked: list[Question]) -> dict[str, int]:
    """How many seconds before its end each series is read by some query."""
    furthest: dict[str, int] = {}
    for _, expr, seconds, _ in asked:
        for name, *durations in re.findall(r"([\w:]+)(?:{[^}]*})?(?:\[(\w+)\])?(?: offset (\w+))?", expr):
            back = seconds + sum(seconds_of(duration) for duration in durations if duration)
            furthest[name] = max(furthest.get(name, 0), back)
    return furthest


class Fleet:
    """Samples of every metric, for so many agents, each with tools and models."""

    def __init__(self, size: argparse.Namespace, asked: list[Question]) -> None:
        self.asked_for = {name for _, expr, *_ in asked for name in re.findall(r"\w+_created\b", expr)}
        self.labels = {
            **CLOSED,
            "agent": [f"agent-{number:02d}" for number in range(size.agents)],
            "tool": [f"tool-{number:02d}" for number in range(size.tools)],
            "model": [f"model-{number}" for number in range(size.models)],
            "le": [str(bound) for bound in BY_NAME["agent_tool_call_duration_seconds"].buckets],
        }
        recorded = {name for _, expr, *_ in asked for name in re.findall(r"\w+:\w+:\w+", expr)}
        self.metrics = [*CATALOGUE, *(Metric(name, "gauge", "", labels_of(name)) for name in sorted(recorded))]
        self.targets = [f'job="agents",instance="10.0.0.{number}:9464"' for number in range(size.replicas)]
        self.samples = 0

    def write(self, file, metric: Metric, times: range) -> None:
        """Write a metric's samples at these times as OpenMetrics."""
        # Eleven rates of growth are enough to make neighbours differ, and are put into text only once. What goes wrong
        # does so for one series in eleven.
        quiet = range(1, 11) if any(word in metric.name for word in GOES_WRONG) else ()
        is_born_late = any(word in metric.name for word in BORN_WITH_FIRST_EVENT)
        if metric.type == "gauge":
            shapes = [[f" {1 if shape in quiet else 1 + at // 300 % 3} {at}\n" for at in times] for shape in range(11)]
        else:
            grown = [0 if shape in quiet else shape + 1 for shape in range(11)]
            shapes = [[f" {at // 20 * by // 7 % 10**8} {at}\n" for at in times] for by in grown]
        numbers = itertools.count()
        created = f"{metric.name.removesuffix('_total')}_created"
        file.write(f"# TYPE {metric.name.removesuffix('_total')} {metric.type}\n")
        chosen = itertools.product(*(self.labels.get(label, ("x",)) for label in metric.labels))
        targets = ['job="agents"'] if ":" in metric.name else self.targets
        for values, target in itertools.product(chosen, targets):
            number = next(numbers)
            if is_born_late and number % 11 in quiet:
                continue
            pairs = [f'{label}="{value}"' for label, value in zip(metric.labels, values, strict=True)]
            braces = ",".join([target, *pairs])
            parts = [f"{metric.name}{{{braces}}}"]
            if metric.type == "histogram":
                bounds = [*metric.buckets, "+Inf"]
                parts = [f'{metric.name}_bucket{{{braces},le="{bound}"}}' for bound in bounds]
                parts += [f"{metric.name}_sum{{{braces}}}", f"{metric.name}_count{{{braces}}}"]
            if created in self.asked_for:
                file.writelines(f"{created}{{{braces}}} {times[0]} {at}\n" for at in times)
            for part in parts:
                # The buckets of a histogram and its count have one shape, so that they add up.
                file.write("".join([part + sample for sample in shapes[number % 11]]))
            self.samples += len(times) * (len(parts) + (created in self.asked_for))

    def write_blocks(self, folder: Path, end: int, furthest: dict[str, int]) -> None:
        """Write blocks of the right lengths into ``folder``, up to ``end``."""
        lengths = {}
        for metric in self.metrics:
            base = metric.name.removesuffix("_total")
            names = {metric.name, *(base + part for part in ("_created", "_bucket", "_sum", "_count"))}
            lengths[metric] = max(SHORTEST_SECONDS, *(furthest.get(name, 0) for name in names))
        for seconds, metrics in (
            (SHORT_BLOCK_SECONDS, [metric for metric in self.metrics if lengths[metric] <= BLOCK_SECONDS // 8]),
            (BLOCK_SECONDS, [metric for metric in self.metrics if lengths[metric] > BLOCK_SECONDS // 8]),
        ):
            longest = max(lengths[metric] for metric in metrics)
            for begin in range((end - longest) // seconds * seconds, end, seconds):
                text = folder / "samples.om"
                with text.open("w", encoding="utf-8") as file:
                    for metric in metrics:
                        first = max(begin, end - lengths[metric])
                        times = range(first + -first % SCRAPE_SECONDS, min(begin + seconds, end + 1), SCRAPE_SECONDS)
                        if times:
                            self.write(file, metric, times)
                    file.write("# EOF\n")
                promtool(
                    "create-blocks-from", f"--max-block-duration={seconds}s", "openmetrics", str(text), str(folder)
                )
                text.unlink()


def labels_of(record: str) -> tuple[str, ...]:
    """The labels of a recorded series, which its name begins with."""
    return tuple(record.partition(":")[0].split("_"))


def promtool(*arguments: str) -> None:
    """Run ``promtool tsdb``."""
    subprocess.run(["promtool", "tsdb", *arguments], check=True, capture_output=True, timeout=1800)


def main() -> int:
    """Print the slowest queries and say whether one is over the bound."""
    parser = argparse.ArgumentParser(description="Time every query of the pack.")
    for name, default in (("agents", 20), ("tools", 10), ("models", 2), ("replicas", 1), ("bound", 200), ("shown", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--recording", action="store_true", help="the pack with recording rules, beside the one without"
    )
    size = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = {}
        for recording in (False, True)[: 1 + size.recording]:
            render({"recordingRules": True} if recording else None, folder / str(recording))
            asked["on" if recording else "off"] = list(questions(folder / str(recording)))
        together = [question for of_pack in asked.values() for question in of_pack]
        end = int(time.time()) // SHORT_BLOCK_SECONDS * SHORT_BLOCK_SECONDS - SCRAPE_SECONDS
        fleet = Fleet(size, together)
        fleet.write_blocks(folder, end, looked_back_on(together))
        (folder / "prometheus.yml").write_text("{}", encoding="utf-8")
        with running_prometheus(folder, "--storage.tsdb.retention.time=60d", data=".") as url:
            series = json.loads(get(f'{url}/api/v1/query?query=count({{__name__!=""}})&time={end}', timeout_seconds=60))
            print(
                f"{size.agents} agents x {size.tools} tools x {size.models} models, {size.replicas} targets: "
                f"{series['data']['result'][0]['value'][1]} series, {fleet.samples / 1e6:.1f} million samples"
            )
            over = 0
            for recording, of_pack in asked.items():
                slowest = sorted(((milliseconds(url, one, end), one.place) for one in of_pack), reverse=True)
                over = sum(taken > size.bound for taken, _ in slowest)
                print(f"recording rules {recording}: {len(slowest)} queries, {over} over {size.bound} ms")
                for taken, place in slowest[: size.shown]:
                    print(f"{taken:8.0f} ms  {place}")
    return 1 if over else 0


def milliseconds(url: str, question: Question, end: int) -> float:
    """Best of the rounds."""
    if question.seconds:
        # Grafana begins and ends at a multiple of the step.
        last = end // question.step * question.step
        span = f"start={last - question.seconds}&end={last}&step={question.step}"
        path = f"query_range?query={quote(question.expr)}&{span}"
    else:
        path = f"query?query={quote(question.expr)}&time={end}"
    taken = []
    for _ in range(ROUNDS):
        began, worked = time.perf_counter(), processor_seconds(url)
        get(f"{url}/api/v1/{path}", timeout_seconds=120)
        taken += [time.perf_counter() - began, processor_seconds(url) - worked]
    return 1000 * min(taken)


def processor_seconds(url: str) -> float:
    """What the server has used so far."""
    found = re.search(r"^process_cpu_seconds_total (\S+)", get(f"{url}/metrics"), re.MULTILINE)
    assert found
    return float(found[1])


if __name__ == "__main__":
    sys.exit(main())

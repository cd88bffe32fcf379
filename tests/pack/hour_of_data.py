"""An hour of made-up samples of every metric in the catalogue, for a real Prometheus."""

import subprocess
from itertools import product
from pathlib import Path

from turnwatch.metrics.catalogue import CATALOGUE, CLOSED_LABELS

STEP_SECONDS = 30
HOUR = 3600
VALUES = {
    **CLOSED_LABELS,
    "agent": ("coder", "support"),
    "tool": ("search", "fetch"),
    "model": ("claude-sonnet-4-5", "own-7b"),
    "outcome": ("ok", "error"),
    "stop_reason": ("final_answer", "loop_detected"),
    "kind": ("stale_repeat",),
    "severity": ("stuck", "warn"),
    "type": ("input", "output"),
    "mode": ("full", "none"),
}
TARGET = {"job": "bots", "instance": "10.0.0.1:9464"}
LOOP = {"alertname": "AgentLoopDetected", "severity": "critical", "agent": "coder", "tool": "fetch"}
NEEDS_DAYS = {"Against a week ago"}
"""Panels that an hour of data leaves empty."""
STEPS = range(HOUR // STEP_SECONDS + 1)


class Plain:
    """What happens in the hour: everything, evenly. Another story has the same attributes."""

    values = VALUES

    def others(self, _start):
        """Series that are no metric of the catalogue: name, labels, a value for each step (None: no sample)."""
        yield "up", {}, [0 for _ in STEPS]
        yield "ALERTS", {**LOOP, "alertstate": "firing"}, [1 for _ in STEPS]
        yield "ALERTS_FOR_STATE", LOOP, [1700000000 for _ in STEPS]

    def series(self, metric, _labels):
        """A value for each step: a counter's total, a gauge's value, a histogram's count. Empty: no such series."""
        if metric.type == "gauge":
            return [1 + index % 7 for index in STEPS]
        return [index / 2 if metric.type == "counter" else index for index in STEPS]

    def below(self, metric, labels, position):
        """How many of a histogram's values lie below the bucket bound at ``position``, for each step."""
        share = min(1.0, (position + 1) / len(metric.buckets))
        return [count * share for count in self.series(metric, labels)]

    def total(self, metric, labels):
        """The sum of a histogram's values, for each step."""
        return [count * 3 for count in self.series(metric, labels)]


def write_blocks(folder: Path, start: int, story=None) -> None:
    """Write the hour that begins at ``start`` as blocks that Prometheus reads."""
    story = story or Plain()
    text = folder / "samples.om"
    with text.open("w", encoding="utf-8") as file:
        typed = None
        for name, labels, values in story.others(start):
            if name != typed:
                file.write(f"# TYPE {name} gauge\n")
            typed = name
            for index, value in enumerate(values):
                if value is not None:
                    file.write(f"{name}{_braces({**TARGET, **labels})} {value} {start + index * STEP_SECONDS}\n")
        for metric in CATALOGUE:
            file.write(f"# TYPE {metric.name.removesuffix('_total')} {metric.type}\n")
            for chosen in product(*(story.values.get(label, ("x",)) for label in metric.labels)):
                labels = dict(zip(metric.labels, chosen, strict=True))
                for part, more, values in _parts(story, metric, labels):
                    braces = _braces({**TARGET, **labels, **more})
                    file.writelines(
                        f"{metric.name}{part}{braces} {value} {start + index * STEP_SECONDS}\n"
                        for index, value in enumerate(values)
                    )
        file.write("# EOF\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder)],
        check=True,
        capture_output=True,
        timeout=120,
    )


def _parts(story, metric, labels):
    """The series of a metric: what its name ends with, the labels it has of its own, a value for each step."""
    if metric.type != "histogram":
        yield "", {}, story.series(metric, labels)
        return
    for position, bound in enumerate((*metric.buckets, "+Inf")):
        yield "_bucket", {"le": str(bound)}, story.below(metric, labels, position)
    yield "_sum", {}, story.total(metric, labels)
    yield "_count", {}, story.series(metric, labels)


def _braces(labels):
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"

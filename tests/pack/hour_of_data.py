"""An hour of made-up samples of every metric in the catalogue, for a real Prometheus."""

import subprocess
from itertools import product
from pathlib import Path

from turnwatch.metrics.catalogue import CATALOGUE

STEP_SECONDS = 30
HOUR = 3600
VALUES = {
    "agent": ("coder", "support"),
    "tool": ("search", "fetch"),
    "model": ("claude-sonnet-4-5", "own-7b"),
    "outcome": ("ok", "error"),
    "stop_reason": ("final_answer", "loop_detected"),
    "result": ("same", "changed", "unknown"),
    "kind": ("stale_repeat",),
    "severity": ("stuck", "warn"),
    "type": ("input", "output"),
    "mode": ("full", "none"),
}
TARGET = {"job": "bots", "instance": "10.0.0.1:9464"}
LOOP = {"alertname": "AgentLoopDetected", "severity": "critical", "agent": "coder", "tool": "fetch"}
OTHERS = {
    "up": ({}, "0"),
    "ALERTS": ({**LOOP, "alertstate": "firing"}, "1"),
    "ALERTS_FOR_STATE": (LOOP, "1700000000"),
}


def write_blocks(folder: Path, start: int) -> None:
    """Write the hour that begins at ``start`` as blocks that Prometheus reads."""
    text = folder / "samples.om"
    with text.open("w", encoding="utf-8") as file:
        for name, (labels, value) in OTHERS.items():
            file.write(f"# TYPE {name} gauge\n")
            for at in range(start, start + HOUR + 1, STEP_SECONDS):
                file.write(f"{name}{_braces({**TARGET, **labels})} {value} {at}\n")
        for metric in CATALOGUE:
            file.write(f"# TYPE {metric.name.removesuffix('_total')} {metric.type}\n")
            for values in product(*(VALUES.get(label, ("x",)) for label in metric.labels)):
                labels = {**TARGET, **dict(zip(metric.labels, values, strict=True))}
                for index, at in enumerate(range(start, start + HOUR + 1, STEP_SECONDS)):
                    file.writelines(_samples(metric, labels, index, at))
        file.write("# EOF\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder)],
        check=True,
        capture_output=True,
        timeout=120,
    )


def _samples(metric, labels, index, at):
    braces = _braces(labels)
    if metric.type == "counter":
        yield f"{metric.name}{braces} {index / 2} {at}\n"
    elif metric.type == "gauge":
        yield f"{metric.name}{braces} {1 + index % 7} {at}\n"
    else:
        for position, bound in enumerate((*metric.buckets, "+Inf")):
            share = min(1.0, (position + 1) / len(metric.buckets))
            yield f"{metric.name}_bucket{_braces({**labels, 'le': str(bound)})} {index * share} {at}\n"
        yield f"{metric.name}_sum{braces} {index * 3} {at}\n"
        yield f"{metric.name}_count{braces} {index} {at}\n"


def _braces(labels):
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"

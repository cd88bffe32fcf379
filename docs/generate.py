"""Make the reference pages from their sources, and the README's list of alerts from the rendered rules.

docs/metrics.md comes from the catalogue, docs/settings.md from the settings' model, docs/dialects.md from the captured
spans of tests/sources/spans.

Run by ``make generate``; tests/docs fails when what is committed is not what this makes.
"""

from __future__ import annotations

import logging
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from turnwatch.metrics.catalogue import CATALOGUE, CLOSED_LABELS, Metric
from turnwatch.settings_reference import settings_reference

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "alert_rules" / "turnwatch.rules.yaml"
INTRODUCTION = """\
Prometheus names, and beside them the OpenTelemetry name and unit of the same metric. Counters and histograms count a
turn's own work. Gauges named `_max` look back over a trailing window (`detect.window_seconds`, 300 s) and are computed
at the scrape, open turns included. Agent, tool and model names past a bound are folded to `__other__`. Gauges carry no
OpenTelemetry unit."""
SERVING = """\
## Where they are

`tw.start_metrics_server(port=9464)` serves them on a port of their own; `tw.metrics_wsgi_app()` and
`tw.metrics_asgi_app()` are applications to mount in yours. They are also in prometheus-client's default registry, for
an endpoint that you have. `tw.configure(metrics="otel")` gives them to OpenTelemetry's meter provider instead.

The port is open to this machine only. In a container, or where Prometheus is elsewhere, it is
`tw.start_metrics_server(port=9464, host="0.0.0.0")` or `tw.instrument(port=9464, host="0.0.0.0")`. Whoever reaches it
then reads names of agents, tools and models, counts and dollars, without a password; there are no arguments, results or
conversation ids in it. Let a NetworkPolicy or firewall admit Prometheus alone.

`start_metrics_server` raises `OSError` where the port is taken; catch it where the agent is to start all the same.
`instrument(port=...)` logs it, and the agent goes on without a port.

## Workers of one server

Workers (gunicorn, uvicorn, Celery) cannot all listen on one port, and a process that was forked counts into memory of
its own, which is not on its parent's page. Set `PROMETHEUS_MULTIPROC_DIR` to an empty folder that is there before the
first one starts, and mount the application: whichever worker is asked answers for all. Counters and histograms are
added up; of gauges named `_max` the largest is taken, of the workers that live. Where workers serve no HTTP, as
Celery's, open the port in the process that forks them: `tw.start_metrics_server` or `tw.instrument(port=...)` in the
module that has the tasks. Without the folder such a process shows an empty page, and each worker says so once in the
log.

A worker that leaves by `os._exit`, as Celery's and `multiprocessing`'s do, does not wait for turns that are read from
spans, which end some ten seconds after their last one. `trace.get_tracer_provider().shutdown()` ends them, in Celery
from the signal `worker_process_shutdown`. Turns by hand are counted when their block ends.

## Processes that end before a scrape

A job that runs for seconds is gone when Prometheus comes. Three ways, from the simplest:

- Its framework writes GenAI spans: send them to `turnwatch serve`, which lives on, and whose counters add up over all
  runs ([serve](serve.md)). Turns by hand are not counted there: the process that wrote their spans has counted them.
- OpenTelemetry pushes: with `tw.configure(metrics="otel", meter_provider=provider)` and a
  `PeriodicExportingMetricReader`, `provider.shutdown()` sends what was counted before the process ends.
- A Pushgateway: `prometheus_client.push_to_gateway("pushgateway:9091", job="nightly-report",
  grouping_key={"instance": run_id}, registry=tw.metrics_registry())` at the end. A counter that the next run pushes
  with the same value does not rise, so a run needs a key of its own; and what was pushed stays until it is deleted
  (`delete_from_gateway`), gauges too.

## How many series there are

Agents past 50, tools past 200 and models past 100 share one name in a process ([`bounds`](settings.md#bounds)), but
each agent has series of its own for each of its tools and models: about thirty a tool, `_created` included. An agent
with ten tools and one model has 420 series; 50 agents that have each used 200 tools have 306,000, a page of 26 MB that
takes six seconds to write. Where tool names come from a model, set `bounds: {tools: ...}` to what there is."""
BEGIN, END = "<!-- alerts: made by make generate -->", "<!-- end of alerts -->"


def documents() -> dict[Path, str]:
    """Return the text of every document that is made here, by its path."""
    readme = ROOT / "README.md"
    return {
        ROOT / "docs" / "metrics.md": metrics_reference(),
        ROOT / "docs" / "settings.md": settings_reference(),
        ROOT / "docs" / "dialects.md": dialects_table(),
        readme: _between_marks(readme.read_text(encoding="utf-8"), alerts_table()),
    }


def metrics_reference() -> str:
    """Return the reference of all metrics as Markdown."""
    parts = [
        "<!-- Made by docs/generate.py (make generate) from exporter/turnwatch/metrics/catalogue.py. -->",
        "# Metrics",
        INTRODUCTION,
        SERVING,
    ]
    for prefix, title in (("agent_", "Of agents"), ("turnwatch_", "Of turnwatch itself")):
        parts.append(f"## {title}")
        chosen = [metric for metric in CATALOGUE if metric.name.startswith(prefix)]
        for kind, metrics in groupby(chosen, key=lambda metric: metric.type):
            parts.append(f"### {kind.capitalize()}s")
            parts.append(_table(["Name", "Labels", "What it counts", "OpenTelemetry name", "Unit"], map(_row, metrics)))
    parts.append("## Labels")
    parts.append("Of agents' metrics, beside `agent`, `tool` and `model`.")
    closed = ([f"`{label}`", " ".join(f"`{value}`" for value in values)] for label, values in CLOSED_LABELS.items())
    parts.append(_table(["Label", "Values"], closed))
    parts.append("## Buckets")
    histograms = [metric for metric in CATALOGUE if metric.buckets]
    bounds = ([f"`{metric.name}`", " ".join(f"{bound:g}" for bound in metric.buckets)] for metric in histograms)
    parts.append(_table(["Histogram", "Upper bounds"], bounds))
    return "\n\n".join(parts) + "\n"


def dialects_table() -> str:
    """Return what each dialect of spans carries, measured on the captured spans."""
    sys.path.insert(0, str(ROOT))
    from tests.sources.spans.corpus import table

    return table()


def alerts_table() -> str:
    """Return the rendered alerts as a Markdown table, one row a name."""
    groups = yaml.load(RULES.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["groups"]
    alerts: dict[str, list[dict[str, Any]]] = {}
    for rule in (rule for group in groups for rule in group["rules"] if "alert" in rule):
        alerts.setdefault(rule["alert"], []).append(rule)
    rows = (
        [
            f"[{name}](runbooks/{name}.md)",
            ", ".join(dict.fromkeys(rule["labels"]["severity"] for rule in rules)),
            rules[0]["annotations"]["summary"],
        ]
        for name, rules in sorted(alerts.items())
    )
    return _table(["Alert", "Severity", "What it says"], rows)


def _row(metric: Metric) -> list[str]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return [f"`{metric.name}`", labels, metric.help, f"`{metric.otel_name}`", metric.unit and f"`{metric.unit}`"]


def _table(head: list[str], rows: Any) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _between_marks(text: str, made: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


if __name__ == "__main__":
    logging.getLogger("turnwatch").setLevel(logging.ERROR)  # what dialects lack is in their table
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")

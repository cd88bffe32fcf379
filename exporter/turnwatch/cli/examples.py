"""The examples at the end of every command's help."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "": (
        "turnwatch demo                        # see a stuck agent page somebody",
        "turnwatch scan ~/.claude/projects     # look at runs that you have",
        "turnwatch serve                       # watch agents that send OpenTelemetry",
    ),
    "demo": (
        "turnwatch demo",
        "turnwatch demo --keep     # leave Prometheus and Alertmanager running",
    ),
    "scan": (
        "turnwatch scan ~/.claude/projects          # your own sessions of Claude Code",
        "turnwatch scan --html stuck.html traces/   # a page with the worst turns drawn",
        "turnwatch scan --fail-on-loop runs.jsonl   # exit code 1 when a turn is stuck",
    ),
    "tune": (
        "turnwatch tune runs.jsonl                         # what each threshold flags",
        "turnwatch tune runs.jsonl --out turnwatch.yaml    # and better ones, as a file",
        "turnwatch tune runs.jsonl --outcomes labels.csv   # by what came of the runs",
    ),
    "backfill": (
        "turnwatch backfill traces/ --out history.om",
        "turnwatch backfill runs.jsonl --from 2026-11-01T08:00:00Z --out history.om",
    ),
    "serve": (
        "turnwatch serve",
        "turnwatch serve --forward http://collector:4318     # on the way to a collector",
        "turnwatch serve --config turnwatch.yaml --no-grpc",
    ),
    "top": (
        "turnwatch top 127.0.0.1:9464                  # an exporter, live",
        "turnwatch top http://prometheus:9090          # all that a Prometheus scrapes",
        "turnwatch top --once --json 127.0.0.1:9464    # for scripts",
    ),
    "kill": (
        "turnwatch kill c-17                   # its guarded turns stop at their next call",
        "turnwatch kill --agent support-bot    # all of this agent's",
        "turnwatch kill c-17 --undo            # --list says what is killed",
    ),
    "pack": (
        "turnwatch pack render --out turnwatch-pack",
        "turnwatch pack check turnwatch-pack",
    ),
    "pack render": (
        "turnwatch pack render --out turnwatch-pack",
        "turnwatch pack render --config turnwatch.yaml --out turnwatch-pack",
        "turnwatch pack render --out turnwatch-pack --for kubernetes --for grafana",
    ),
    "pack check": (
        "turnwatch pack check                     # the pack as it is shipped",
        "turnwatch pack check turnwatch-pack      # with your own changes",
    ),
    "pack test": (
        "turnwatch pack test turnwatch-pack       # needs promtool",
        "turnwatch pack test                      # the pack as it is shipped",
    ),
    "pack diff": (
        "turnwatch pack diff turnwatch-pack --grafana-url https://grafana.example.com",
        "turnwatch pack diff --prometheus-url http://localhost:9090 --rules-folder /etc/prometheus/rules",
    ),
    "pack deploy": (
        "turnwatch pack deploy turnwatch-pack --grafana-url https://grafana.example.com --dry-run",
        "turnwatch pack deploy --prometheus-url http://localhost:9090 --rules-folder /etc/prometheus/rules",
    ),
}
"""By command; each is a line for a shell, with a comment where it needs one."""


def epilog_of(command: str) -> str:
    """What stands at the end of a command's help."""
    return "\n\n".join(["Examples:", *EXAMPLES[command]])  # typer may join lines that no empty one separates

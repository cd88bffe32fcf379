"""The demonstration's report, for people and for programs."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from turnwatch.demo.agents import HEALTHY_AGENT, STUCK_AGENT
from turnwatch.demo.run import NIGHT_HOURS, Ending, Morning
from turnwatch.demo.timeline import Moment, Timeline
from turnwatch.demo.webhook import Notification

_COLOURS = {
    STUCK_AGENT: "red",
    HEALTHY_AGENT: "green",
    "turnwatch": "cyan",
    "prometheus": "yellow",
    "alertmanager": "yellow",
    "webhook": "bold magenta",
}


def heading() -> Table:
    """Return the line above the timeline."""
    return _columns("", "since call 3", Text(""), Text(""))


def line(moment: Moment) -> Table:
    """Return a moment as one line of the timeline."""
    since_third_call = "" if moment.after_third_call is None else f"+{moment.after_third_call:.1f} s"
    who = Text(moment.who, style=_COLOURS.get(moment.who, ""))
    return _columns(f"{moment.seconds:.1f} s", since_third_call, who, Text(moment.what))


def _columns(at: str, since_third_call: str, who: Text, what: Text) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=7, justify="right")
    table.add_column(width=12, justify="right", style="dim")
    table.add_column(width=12)
    table.add_column()
    table.add_row(at, since_third_call, who, what)
    return table


def show(ending: Ending, console: Console) -> None:
    """Print how it ended."""
    console.print()
    if ending.page is None:
        console.print(Panel(_last_verdict(ending), title="what turnwatch says", title_align="left"))
        console.print(Panel(Text(_own_metrics(ending.metrics)), title="/metrics, the stuck agent", title_align="left"))
    else:
        console.print(Panel(_payload_table(ending.page), title="what the webhook got", title_align="left"))
    if ending.page_seconds is not None:
        console.print(
            f"The page came {ending.page_seconds:.1f} s after the third identical call.", style="bold", highlight=False
        )
    console.print(in_the_morning(ending.morning), highlight=False)


def in_the_morning(morning: Morning) -> str:
    """Say what the loop would have cost, and how that was computed."""
    return (
        f"Left alone for {NIGHT_HOURS} hours, until morning: {morning.calls:,} calls and ${morning.usd:,.0f}, "
        f"at this run's own pace ({morning.seconds_per_call:.1f} s a call) "
        f"and spend (${morning.usd_per_call:.4f} a call)."
    )


def running(ending: Ending) -> Table:
    """Return the addresses of what still runs."""
    table = Table.grid(padding=(0, 2))
    for name, address in ending.addresses.items():
        table.add_row(Text(name, style=_COLOURS.get(name, "")), Text(address))
    return table


def payload(page: Notification) -> dict[str, str]:
    """Return the essentials of a page."""
    labels = {name: page.labels.get(name, "") for name in ("alertname", "agent", "tool", "severity")}
    links = {name: page.annotations.get(name, "") for name in ("summary", "runbook_url", "dashboard_url")}
    return labels | links


def as_json(timeline: Timeline, ending: Ending) -> dict[str, Any]:
    """Return everything that happened as JSON data."""
    state, morning = ending.state, ending.morning
    return {
        "paged": ending.page is not None,
        "page_seconds_after_third_call": ending.page_seconds,
        "webhook": None if ending.page is None else payload(ending.page),
        "healthy_agent_alerts": ending.healthy_agent_alerts,
        "addresses": ending.addresses,
        "turn": {
            "agent": state.agent,
            "iterations": state.iterations,
            "tool_calls": state.tool_calls,
            "repeats": state.repeats,
            "duplicates": state.duplicates,
            "spend_usd": state.spend_usd,
        },
        "verdict": None
        if state.verdict is None
        else {
            "kind": state.verdict.kind,
            "severity": state.verdict.severity,
            "tool": state.verdict.tool,
            "detected_call": state.verdict.detected_call,
            "reason": state.verdict.reason,
        },
        "by_morning": {
            "hours": NIGHT_HOURS,
            "calls": morning.calls,
            "usd": round(morning.usd, 2),
            "seconds_per_call": morning.seconds_per_call,
            "usd_per_call": morning.usd_per_call,
        },
        "timeline": [
            {
                "seconds": round(moment.seconds, 3),
                "seconds_after_third_call": None
                if moment.after_third_call is None
                else round(moment.after_third_call, 3),
                "who": moment.who,
                "what": moment.what,
            }
            for moment in timeline.moments
        ],
    }


def _payload_table(page: Notification) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in payload(page).items():
        table.add_row(Text(name, style="cyan"), Text(value, overflow="fold"))
    return table


def _last_verdict(ending: Ending) -> Group:
    state = ending.state
    counts = f"{state.tool_calls} tool calls, {state.repeats} repeats, {state.duplicates} duplicates"
    return Group(Text(state.explain()), Text(counts))


def _own_metrics(metrics: str) -> str:
    """Return the stuck agent's samples, without buckets, creation times and what stands at nought."""
    own = [sample for sample in metrics.splitlines() if f'agent="{STUCK_AGENT}"' in sample]
    told = [sample for sample in own if "_bucket{" not in sample and "_created{" not in sample]
    return "\n".join(sample for sample in told if not sample.endswith(" 0.0"))

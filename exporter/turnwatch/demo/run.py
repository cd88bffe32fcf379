"""The demonstration from the first call to the page."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

import turnwatch as tw
from turnwatch.demo.agents import HEALTHY_AGENT, STUCK_AGENT, TOOL, Loop, both_at_work
from turnwatch.demo.programs import Programs
from turnwatch.demo.servers import Servers, serving
from turnwatch.demo.timeline import Timeline
from turnwatch.demo.webhook import Notification
from turnwatch.pack.home import pack_home
from turnwatch.pack.render import RULES_FILE

ALERT: Final = "AgentDuplicateToolCalls"
PROMISED_SECONDS: Final = 5.0
"""The webhook is to come no later than this after the third identical call, at a one second scrape."""

NIGHT_HOURS: Final = 10
"""From ten in the evening, when the loop starts and nobody looks, to eight in the morning."""

_PATIENCE_SECONDS: Final = 20.0
_JOB: Final = "turnwatch-demo"


@dataclass(frozen=True, slots=True)
class Morning:
    """What the loop would have come to had nobody been told, at the run's own pace and price.

    Attributes:
        seconds_per_call, usd_per_call: Means over the run.
        calls, usd: Over ``NIGHT_HOURS``.
    """

    seconds_per_call: float
    usd_per_call: float
    calls: int
    usd: float


@dataclass(frozen=True, slots=True)
class Ending:
    """How the demonstration ended.

    Attributes:
        page: The notification of the critical alert; None when there were no servers or none came.
        page_seconds: Seconds from the third identical call to the page.
        healthy_agent_alerts: What Alertmanager held about the healthy agent.
        state: The stuck agent's turn.
        morning: What the loop would have cost.
        metrics: The exporter's text, at the end.
        addresses: URLs of what runs, by name; empty when there were no servers.
    """

    page: Notification | None
    page_seconds: float | None
    healthy_agent_alerts: list[dict[str, str]]
    state: tw.TurnState
    morning: Morning
    metrics: str
    addresses: dict[str, str]

    @property
    def kept_its_promise(self) -> bool:
        """Whether the page came in time and the healthy agent raised nothing."""
        in_time = self.page_seconds is not None and self.page_seconds <= PROMISED_SECONDS
        return in_time and not self.healthy_agent_alerts


@contextmanager
def paging(programs: Programs, timeline: Timeline) -> Iterator[Ending]:
    """Let the agent get stuck, with everything real between it and the page.

    Servers and agents run on while the context is open; nothing is left when it closes.

    Args:
        programs: The server programs.
        timeline: Told what happens.

    Yields:
        How it ended, once the page has come or has not.

    Raises:
        ServerFailedError: A server did not start.
        TimeoutError: Prometheus did not scrape the exporter.
    """
    with ExitStack() as stack:
        metrics_address, registry = stack.enter_context(_exporting())
        timeline.tell("turnwatch", f"exporter at http://{metrics_address}/metrics")
        rules = pack_home() / RULES_FILE
        servers = stack.enter_context(serving(rules, {_JOB: metrics_address}, programs=programs, tell=timeline.tell))
        timeline.tell("prometheus", f"at {servers.prometheus}, with the pack's rules; scrapes every second")
        timeline.tell("alertmanager", f"at {servers.alertmanager}, sends pages to {servers.webhook.url}")
        loop, passed = stack.enter_context(_agents(timeline, registry))
        passed.third_call.wait(_PATIENCE_SECONDS)
        _tell_when_firing(servers, timeline)
        page = servers.webhook.wait_for(_is_the_page, timeout_seconds=_PATIENCE_SECONDS)
        if page is not None:
            timeline.tell("webhook", f"received {ALERT}, {page.labels['severity']}", at=page.at)
        healthy = servers.raised(agent=HEALTHY_AGENT)
        timeline.tell(HEALTHY_AGENT, f"raised {len(healthy)} alerts" if healthy else "raised nothing all along")
        addresses = {
            "metrics": f"http://{metrics_address}/metrics",
            "prometheus": servers.prometheus,
            "alertmanager": servers.alertmanager,
        }
        yield _ending(timeline, loop, registry, page, healthy, addresses)


def run_without_servers(timeline: Timeline) -> Ending:
    """Let the agent get stuck where nobody can be paged: the verdict and the metrics are there all the same."""
    with _exporting() as (_, registry), _agents(timeline, registry) as (loop, passed):
        passed.stuck.wait(_PATIENCE_SECONDS)
        return _ending(timeline, loop, registry)


@contextmanager
def _exporting() -> Iterator[tuple[str, CollectorRegistry]]:
    registry = CollectorRegistry()
    tw.configure(tw.Settings(), registry=registry)
    server, thread = tw.start_metrics_server(port=0)
    try:
        yield f"127.0.0.1:{server.server_port}", registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True, slots=True)
class _Turning:
    """Points that the stuck agent passes."""

    third_call: threading.Event
    stuck: threading.Event


@contextmanager
def _agents(timeline: Timeline, registry: CollectorRegistry) -> Iterator[tuple[Loop, _Turning]]:
    passed = _Turning(threading.Event(), threading.Event())

    def on_call(loop: Loop, state: tw.TurnState) -> None:
        number, at = len(loop.call_times), loop.call_times[-1]
        if number == 3:
            timeline.third_call_at = at
        timeline.tell(STUCK_AGENT, f'call {number}: {TOOL}(customer_id="C-7841")', at=at)
        duplicates = registry.get_sample_value("agent_duplicate_tool_calls_total", {"agent": STUCK_AGENT, "tool": TOOL})
        if duplicates:
            timeline.tell("turnwatch", f"duplicate counted: agent_duplicate_tool_calls_total {duplicates:g}")
        for verdict in state.verdicts:
            if verdict.detected_call == number:
                timeline.tell("turnwatch", f"verdict {verdict.severity}: {verdict.reason}")
                if verdict.severity == "stuck":
                    passed.stuck.set()
        if number == 3:
            passed.third_call.set()

    with both_at_work(on_call) as loop:
        yield loop, passed


def _tell_when_firing(servers: Servers, timeline: Timeline) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for labels in servers.firing():
            if labels["alertname"] == ALERT and labels["severity"] == "critical":
                timeline.tell("prometheus", f"{ALERT} is firing, critical")
                return
        time.sleep(0.05)


def _is_the_page(notification: Notification) -> bool:
    labels = notification.labels
    return notification.status == "firing" and labels["alertname"] == ALERT and labels["severity"] == "critical"


def _ending(
    timeline: Timeline,
    loop: Loop,
    registry: CollectorRegistry,
    page: Notification | None = None,
    healthy_agent_alerts: Sequence[dict[str, str]] = (),
    addresses: Mapping[str, str] = MappingProxyType({}),
) -> Ending:
    assert loop.state is not None
    calls = round(NIGHT_HOURS * 3600 / loop.seconds_per_call)
    third = timeline.third_call_at
    return Ending(
        page=page,
        page_seconds=page.at - third if page is not None and third is not None else None,
        healthy_agent_alerts=list(healthy_agent_alerts),
        state=loop.state,
        morning=Morning(loop.seconds_per_call, loop.usd_per_call, calls, calls * loop.usd_per_call),
        metrics=generate_latest(registry).decode(),
        addresses=dict(addresses),
    )

"""What has happened, with the time: verdicts, stops of a guard, sources that come and go."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from turnwatch.top.polling import SourceState
from turnwatch.top.quantities import VERDICTS
from turnwatch.top.reading import Reading

Sort = Literal["stuck", "warn", "observe", "stop", "limit", "source"]

KEPT: Final = 500
EARLIER_SECONDS: Final = 3600.0
"""How old a verdict from before the first look may be to be told."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        at: Unix time at which it was seen, or for what had been before, at which the first was.
        sort: A verdict's severity, or what else it is.
        agent: "" where it is no agent's.
        tool: "" where it is no tool's.
        text: What it is, in a few words.
        count: How often.
        is_since: Whether the others were at unknown times since ``at``.
    """

    at: float
    sort: Sort
    agent: str
    tool: str
    text: str
    count: int = 1
    is_since: bool = False


class Journal:
    """The latest events, oldest first, told from one state of the sources to the next."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=KEPT)
        self._before: dict[int, SourceState] = {}

    def note(self, states: Sequence[SourceState]) -> None:
        """Compare the sources with how they were."""
        fresh: list[Event] = []
        for number, state in enumerate(states):
            before = self._before.get(number)
            if state.looks == (0 if before is None else before.looks):
                continue
            fresh += _changes(before, state)
            self._before[number] = state
        self.events.extend(sorted(fresh, key=lambda event: event.at))

    def last(self, sort: Sort) -> dict[str, float]:
        """When each agent last had an event of this sort."""
        return {event.agent: event.at for event in self.events if event.sort == sort}


def _changes(before: SourceState | None, now: SourceState) -> list[Event]:
    was_up = before is not None and before.is_up
    has_been_up = before is not None and before.reading is not None
    if not now.is_up:
        is_news = was_up or before is None
        return [Event(now.at, "source", "", "", f"down: {now.error}")] if is_news else []
    assert now.reading is not None
    events = []
    if before is not None and not was_up:
        events.append(Event(now.at, "source", "", "", f"{'back' if has_been_up else 'up'}: {now.address}"))
    if before is None or before.reading is None:
        return events + _earlier(now.reading, now.at)
    if now.reading.restarts > before.reading.restarts:
        events.append(Event(now.at, "source", "", "", f"restarted: {now.address}"))
    if now.reading.targets_down > before.reading.targets_down:
        events.append(Event(now.at, "source", "", "", f"{now.reading.targets_down} exporters down: {now.address}"))
    return events + _risen(before.reading, now.reading, now.at)


def _earlier(reading: Reading, at: float) -> list[Event]:
    return [
        Event(began, _severity(severity), agent, tool, kind, round(count), is_since=count > 1)
        for (agent, tool, kind, severity), (began, count) in reading.begun.items()
        if at - EARLIER_SECONDS < began
    ]


def _risen(before: Reading, now: Reading, at: float) -> list[Event]:
    events = []
    for metric in (VERDICTS, "agent_guard_stops_total", "agent_iteration_limit_exceeded_total"):
        earlier = before.tallies.get(metric, {})
        for group, count in now.tallies.get(metric, {}).items():
            rise = round(count - earlier.get(group, 0.0))
            if rise <= 0:
                continue
            if metric == VERDICTS:
                agent, tool, kind, severity = group
                events.append(Event(at, _severity(severity), agent, tool, kind, rise))
            elif metric == "agent_guard_stops_total":
                events.append(Event(at, "stop", group[0], "", f"stopped by a guard: {group[1]}", rise))
            else:
                events.append(Event(at, "limit", group[0], "", "past the iteration threshold", rise))
    return events


def _severity(severity: str) -> Sort:
    return "stuck" if severity == "stuck" else "warn" if severity == "warn" else "observe"

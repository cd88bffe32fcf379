"""What an exporter would have exposed while recorded turns ran: the turns once more, by a clock of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, Protocol

from cachetools import LRUCache
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from turnwatch.core.events import ToolCall
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.metrics.prometheus import StoreCollector
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings
from turnwatch.sources.event_log import Beginning, Event, Kind

# How long nothing has happened, and how far apart scrapes are from then on. After an hour there are still two in every
# five minutes, which is how far Prometheus and the rates of the dashboards look back; after a day four a day, so that
# increases over a day or a week are 0 there and not missing, which is what growth is compared with. A year of silence
# would otherwise be millions of equal samples for every series.
_QUIET: Final = ((86_400.0, 21_600.0), (3_600.0, 120.0))
# How long before something happens again the scrapes are at most how far apart. The rules take a counter for new that
# was not there within the hour before their window.
_AWAKE_BEFORE: Final = 7_200.0
_AWAKE: Final = 1_800.0
_ENDED_TURNS: Final = 1_000


class Readings(Protocol):
    """Takes what the scrapes read."""

    def add(self, at: float, families: Iterable[Family]) -> None:
        """The metrics at this time."""

    def add_again(self, at: float) -> None:
        """The same as at the scrape before."""


def backfill(events: Iterable[Event], settings: Settings, readings: Readings, step_seconds: float = 15.0) -> None:
    """Let recorded turns run again, and read the metrics as a Prometheus would have.

    The first scrape is one step before the first event, the last when everything has left the trailing windows. After
    a quiet hour the scrapes are two minutes apart, after a quiet day six hours, and half an hour in the last two hours
    before something happens again.

    Args:
        events: In the order of their times.
        settings: Thresholds, bounds, overrides.
        readings: Gets the metrics of every scrape.
        step_seconds: Scrape interval.
    """
    scrapes: _Scrapes | None = None
    replay = _Replay(settings)
    for event in events:
        if scrapes is None:
            scrapes = _Scrapes(replay, readings, event.at, step_seconds, settings.detect.window_seconds)
        scrapes.up_to(event.at)
        replay.apply(event)
    if scrapes is not None:
        scrapes.up_to(replay.now + settings.detect.window_seconds + 2 * step_seconds)


class _Scrapes:
    """Reads the metrics at even times."""

    def __init__(self, replay: _Replay, readings: Readings, first_event: float, step: float, window: float) -> None:
        self._replay = replay
        self._readings = readings
        self._step = step
        self._window = window
        self._next = (math.ceil(first_event / step) - 1) * step
        self._latest_event = first_event
        self._is_settled = False

    def up_to(self, at: float) -> None:
        """Read what there was at every scrape before ``at``, when the next event is."""
        while self._next < at:
            if self._is_settled:
                self._readings.add_again(self._next)
            else:
                self._replay.now = max(self._replay.now, self._next)
                self._readings.add(self._next, [_up(), *self._replay.collector.collect()])
                # From now on nothing slides out of a window and nothing grows older.
                self._is_settled = self._replay.is_idle and self._next > self._latest_event + self._window
            self._next += self._stride(at)
        self._latest_event = at
        self._is_settled = False

    def _stride(self, at: float) -> float:
        quiet_for = self._next - self._latest_event
        apart = next((apart for after, apart in _QUIET if quiet_for > after), self._step)
        if apart > _AWAKE:
            apart = max(_AWAKE, min(apart, at - self._next - _AWAKE_BEFORE))
        # The last scrape before the next event is one step before it at most, so that its counters can be seen to rise.
        return max(1, min(math.floor(apart / self._step), math.ceil((at - self._next) / self._step) - 1)) * self._step


def _up() -> Family:
    """What Prometheus itself notes of a scrape that worked."""
    return GaugeMetricFamily("up", "Whether the scrape worked.", value=1.0)


class _Replay:
    """The recorded turns on a watch whose clock is set by their events.

    Attributes:
        now: What the clock says.
        collector: Reads the metrics, as that of an exporter.
    """

    def __init__(self, settings: Settings) -> None:
        self.now = 0.0
        store = Store(clock=lambda: self.now)
        self._watch = Watch(settings, store, clock=lambda: self.now)
        self.collector = StoreCollector(store, lambda: self._watch)
        self._open: dict[int, TurnState] = {}
        # A sub-agent may begin when the turn that started it has ended.
        self._ended: LRUCache[int, TurnState] = LRUCache(_ENDED_TURNS)
        self._calls: dict[int, ToolCall] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no turn is open."""
        return not self._open

    def apply(self, event: Event) -> None:
        """Let an event happen."""
        self.now = max(self.now, event.at)
        if event.kind is Kind.TURN_BEGAN:
            self._open[event.turn] = self._opened(event.body, event.at)
            return
        turn = self._open[event.turn]
        if event.kind is Kind.TOOL_BEGAN:
            self._calls[event.call] = event.body
            turn.begin_call(event.body)
        elif event.kind is Kind.TOOL_ENDED:
            turn.end_call(self._calls.pop(event.call))
        elif event.kind is Kind.MODEL_BEGAN:
            turn.begin_model(event.at)
        elif event.kind is Kind.MODEL_ENDED:
            turn.end_model(event.body)
        else:
            turn.end(event.body, event.at)
            self._ended[event.turn] = self._open.pop(event.turn)

    def _opened(self, beginning: Beginning, at: float) -> TurnState:
        parent = None
        if beginning.parent is not None:
            parent = self._open.get(beginning.parent) or self._ended.get(beginning.parent)
        return TurnState(
            beginning.agent,
            conversation_id=beginning.conversation_id,
            parent=parent,
            turn_id=beginning.turn_id,
            at=at,
            watch=self._watch,
            source=beginning.source,
        )

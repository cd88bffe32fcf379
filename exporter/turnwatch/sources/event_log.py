"""What turns of many files did, in the order in which it happened: a log on disk, for files are turn by turn."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from turnwatch.core.events import MISSING, ModelCall, ToolCall
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.settings import Settings
from turnwatch.sources.times_of_day import TimesOfDay

_BATCH: Final = 1_000
_PROTOCOL: Final = 5


class Kind(IntEnum):
    """What happened."""

    TURN_BEGAN = 0
    TOOL_BEGAN = 1
    TOOL_ENDED = 2
    MODEL_BEGAN = 3
    MODEL_ENDED = 4
    TURN_ENDED = 5


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a turn.

    Attributes:
        at: When, in seconds since the epoch.
        turn: The turn's number.
        kind: What.
        body: The ``Beginning`` of a turn, a tool call that began, a model call that ended, the stop reason of a turn
            that ended.
        call: The number of the tool call, the same at its beginning and its end.
    """

    at: float
    turn: int
    kind: Kind
    body: Any
    call: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known of a turn when it begins.

    Attributes:
        agent, turn_id, source: As in ``TurnState``.
        conversation_id: The same for the turns of one conversation, and for no others in any file.
        parent: The number of the parent turn; None where it has none.
    """

    agent: str
    turn_id: str
    source: str
    conversation_id: str | None
    parent: int | None


class _Recording:
    """What is kept of a turn that is being read.

    Attributes:
        place: Where among events of the same time its beginning stands.
    """

    __slots__ = ("number", "place", "times")

    def __init__(self, number: int, place: int, times: TimesOfDay) -> None:
        self.number = number
        self.place = place
        self.times = times


class EventLog:
    """Listens to turns while files are scanned, and gives back all their events in the order of their times.

    The log is a temporary database without a name. It holds arguments and results, as the files do.

    Args:
        settings: What the turns are read under.
        starting: When the first of the turns without times is taken to have begun, in seconds since the epoch; the
            others follow it. None leaves them out.
        spacing: Seconds between two calls without times.

    Attributes:
        turns: Turns in the log.
        left_out: Turns that were left out for want of times.
    """

    def __init__(self, settings: Settings, starting: float | None = None, spacing: float = 10.0) -> None:
        self.turns = 0
        self.left_out = 0
        self._settings = settings
        self._next_start = starting
        self._spacing = spacing
        self._numbers = 0
        self._place = 0
        self._rows: list[tuple[float, int, int, int, int, bytes]] = []
        self._recordings: weakref.WeakKeyDictionary[TurnState, _Recording] = weakref.WeakKeyDictionary()
        self._files = 0
        self._file_of: weakref.WeakKeyDictionary[Watch, int] = weakref.WeakKeyDictionary()
        self._database = sqlite3.connect("")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(
            "CREATE TABLE event (at REAL, place INTEGER, turn INTEGER, kind INTEGER, call INTEGER, body BLOB)"
        )

    def close(self) -> None:
        """Give the temporary database back."""
        self._database.close()

    # While files are scanned

    def new_watch(self) -> Watch:
        """A watch for the turns of one file, which tells this log of them."""
        watch = Watch(self._settings, clock=lambda: 0.0)
        watch.listeners.append(self)
        self._files += 1
        self._file_of[watch] = self._files
        return watch

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        """Note a tool call."""
        recording = self._recording(turn)
        if turn.ended or self._is_left_out(recording):
            return
        call = copy.copy(call)
        began, ended = recording.times.place(call)
        try:
            number = self._note(began, recording, Kind.TOOL_BEGAN, call)
        except RecursionError:  # arguments nested so deep: the hash and the canonical form say enough of them
            call.args = MISSING
            number = self._note(began, recording, Kind.TOOL_BEGAN, call)
        self._note(ended, recording, Kind.TOOL_ENDED, call=number)

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        """Note a model call."""
        recording = self._recording(turn)
        if turn.ended or self._is_left_out(recording):
            return
        call = copy.copy(call)
        began, ended = recording.times.place(call)
        self._note(began, recording, Kind.MODEL_BEGAN)
        self._note(ended, recording, Kind.MODEL_ENDED, call)

    def turn_ended(self, turn: TurnState) -> None:
        """Note the turn's beginning and end."""
        recording = self._recording(turn)
        if self._is_left_out(recording):
            self.left_out += 1
            return
        self.turns += 1
        ended = recording.times.end(turn.started + turn.elapsed_seconds)
        if not recording.times.is_known:
            self._next_start = ended + self._spacing
        parent = None if turn.parent is None else self._recording(turn.parent).number
        conversation = turn.conversation_id
        if conversation is not None:
            conversation = f"{self._file_of.get(turn.watch, 0)}/{conversation}"
        beginning = Beginning(turn.agent, turn.turn_id, turn.source, conversation, parent)
        self._note(recording.times.began, recording, Kind.TURN_BEGAN, beginning, place=recording.place)
        self._note(ended, recording, Kind.TURN_ENDED, turn.stop_reason)

    def _is_left_out(self, recording: _Recording) -> bool:
        return not recording.times.is_known and self._next_start is None

    def _recording(self, turn: TurnState) -> _Recording:
        recording = self._recordings.get(turn)
        if recording is None:
            starting = self._next_start
            if turn.parent is not None and not turn.parent.ended and starting is not None:
                above = self._recording(turn.parent).times
                if not above.is_known:  # both count from the same moment
                    starting = turn.started + above.offset
            self._numbers += 1
            times = TimesOfDay(turn.started, starting, self._spacing)
            recording = self._recordings[turn] = _Recording(self._numbers, self._next_place(), times)
        return recording

    def _note(
        self,
        at: float,
        recording: _Recording,
        kind: Kind,
        body: object = None,
        *,
        call: int = 0,
        place: int | None = None,
    ) -> int:
        place = self._next_place() if place is None else place
        self._rows.append((at, place, recording.number, kind, call or place, pickle.dumps(body, _PROTOCOL)))
        if len(self._rows) >= _BATCH:
            self._store_rows()
        return place

    def _next_place(self) -> int:
        self._place += 1
        return self._place

    def _store_rows(self) -> None:
        self._database.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", self._rows)
        self._rows.clear()

    # Afterwards

    def events(self) -> Iterator[Event]:
        """Every event, the earliest first; those of the same time in the order in which they were read."""
        self._store_rows()
        self._database.execute("CREATE INDEX IF NOT EXISTS in_time ON event (at, place)")
        for at, turn, kind, call, body in self._database.execute(
            "SELECT at, turn, kind, call, body FROM event ORDER BY at, place"
        ):
            yield Event(at, turn, Kind(kind), pickle.loads(body), call)

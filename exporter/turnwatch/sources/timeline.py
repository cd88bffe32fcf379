"""What the calls of a turn were, one after the other: enough to draw them, in bounded memory.

Holds numbers, times, sizes and hashes, no arguments and no results.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, final

from cachetools import LRUCache

from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import SEVERITY_RANK

# Of a long turn its beginning is kept, what led to the verdict and followed it, and the end.
_FIRST: Final = 80
_BEFORE_VERDICT: Final = 100
_AFTER_VERDICT: Final = 40
_LAST: Final = 60
# A file of spans may have very many turns open at once; the one that was quiet longest loses its timeline.
_MAX_TURNS: Final = 1_000


class MarkKind(StrEnum):
    """What came of a call, beside the same call earlier in the turn."""

    FIRST = "first"
    CHANGED = "changed"
    SAME = "same"
    UNKNOWN = "unknown"
    ERROR = "error"
    CACHED = "cached"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Mark:
    """One tool call.

    Attributes:
        number: Which call of the turn (1-based), as verdicts count.
        tool: The tool's name.
        kind: What came of it. A failed call is an error, whether or not it failed in the same way before.
        repeats: Whether the result, or error, is the one that the same call had before.
        at: When it was made, in seconds since the epoch; None when the source does not say.
        input_hash: The hash of the tool and its arguments; None when the arguments are missing.
        result_size: Characters of the result; None when unknown.
        spent_usd: What the turn's model calls had cost until then.
    """

    number: int
    tool: str
    kind: MarkKind
    repeats: bool
    at: float | None
    input_hash: str | None
    result_size: int | None
    spent_usd: float


@final
class Timeline:
    """The calls of one turn. Of a long turn those at its beginning, round its worst verdict and at its end.

    Attributes:
        calls: How many calls there were.
    """

    __slots__ = ("_after", "_first", "_last", "_round_verdict", "_severity", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._first: list[Mark] = []
        self._last: deque[Mark] = deque(maxlen=_BEFORE_VERDICT)
        self._round_verdict: list[Mark] = []
        self._after = 0
        self._severity = -1

    def add(self, mark: Mark, severity: str | None) -> None:
        """Add the next call.

        Args:
            mark: The call.
            severity: That of the turn's worst verdict until now.
        """
        self.calls += 1
        if len(self._first) < _FIRST:
            self._first.append(mark)
        self._last.append(mark)
        if self._after:
            self._after -= 1
            self._round_verdict.append(mark)
        rank = SEVERITY_RANK[severity] if severity is not None else -1
        if rank > self._severity:
            self._severity = rank
            self._round_verdict = list(self._last)
            self._after = _AFTER_VERDICT

    def marks(self) -> list[Mark]:
        """The calls that were kept, in order. Where numbers are missing, calls were left out."""
        last = list(self._last)[-_LAST:]
        kept = {mark.number: mark for part in (self._first, self._round_verdict, last) for mark in part}
        return [kept[number] for number in sorted(kept)]


@final
class TimelineRecorder:
    """A listener (see ``turnwatch.core.listener``) that keeps the timelines of open turns.

    Those of ended turns without a verdict are dropped; the others wait to be taken.
    """

    def __init__(self) -> None:
        self._timelines: LRUCache[TurnState, Timeline] = LRUCache(_MAX_TURNS)

    def take(self, turn: TurnState) -> Timeline | None:
        """The timeline of an ended turn with a verdict, once; None when too many turns were open to keep it."""
        return self._timelines.pop(turn, None)

    def model_ended(self, turn: TurnState, call: ModelCall) -> None:
        """Model calls have no mark."""

    def tool_ended(self, turn: TurnState, call: ToolCall) -> None:
        """Keep the call."""
        timeline = self._timelines.get(turn)
        if timeline is None:
            timeline = self._timelines[turn] = Timeline()
        timeline.add(_mark_of(turn, call), None if turn.verdict is None else turn.verdict.severity)

    def turn_ended(self, turn: TurnState) -> None:
        """Drop what nobody will ask for."""
        if turn.verdict is None:
            self._timelines.pop(turn, None)


def _mark_of(turn: TurnState, call: ToolCall) -> Mark:
    against_before = turn.engine.last.repeat_result
    if call.outcome != "ok":
        kind = MarkKind(call.outcome)
    elif call.result is not None and call.result.failure:
        kind = MarkKind.ERROR
    else:
        kind = MarkKind.FIRST if against_before is None else MarkKind(against_before)
    size = call.result.size if call.result is not None else -1
    return Mark(
        number=turn.engine.calls,
        tool=call.tool,
        kind=kind,
        repeats=against_before == "same",
        at=call.started if call.started is not None else call.ended,
        input_hash=call.input_hash,
        result_size=size if size >= 0 else None,
        spent_usd=turn.spent_usd,
    )

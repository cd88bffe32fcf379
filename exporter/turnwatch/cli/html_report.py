"""``turnwatch scan --html``: what a page about a scan needs, kept while the scan runs in memory that does not grow."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Final, final

from turnwatch.cli.html_page import page, turn_card
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import SEVERITY_RANK
from turnwatch.core.watch import Watch
from turnwatch.errors import TurnwatchError
from turnwatch.settings import Settings
from turnwatch.sources.scan import ScannedTurn, Unread
from turnwatch.sources.timeline import TimelineRecorder
from turnwatch.sources.totals import Totals

_DRAWN: Final = 30
_UNREAD_SHOWN: Final = 100

_Rank = tuple[int, int, float, int]


@final
class HtmlReport:
    """The page of one scan.

    Args:
        settings: What the turns are judged by.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recorder = TimelineRecorder()
        self._totals = Totals()
        # The mildest of the worst turns first; of two that are alike, the later one.
        self._worst: list[tuple[_Rank, int, str]] = []
        self._found = 0
        self._times: tuple[float, float] | None = None
        self._unread: list[str] = []
        self._unread_more = 0

    def new_watch(self) -> Watch:
        """What the turns of a file are judged by, for ``turnwatch.sources.scan.scan``."""
        watch = Watch(self._settings, clock=lambda: 0.0)
        watch.listeners += (self._totals, self._recorder)
        return watch

    def add(self, item: ScannedTurn | Unread) -> None:
        """Add what the scan found next."""
        if isinstance(item, Unread):
            if len(self._unread) < _UNREAD_SHOWN:
                self._unread.append(str(item))
            else:
                self._unread_more += 1
            return
        turn = item.state
        timeline = self._recorder.take(turn)
        if turn.started > 0:
            earliest, latest = self._times or (turn.started, turn.started)
            self._times = (min(earliest, turn.started), max(latest, turn.last_active))
        if turn.verdict is None or turn.verdict.severity == "observe":
            return
        self._found += 1
        entry = (_rank(turn), -self._found)
        if len(self._worst) < _DRAWN or entry > self._worst[0][:2]:
            card = turn_card(item.source, item.line, turn, timeline)
            add = heapq.heappush if len(self._worst) < _DRAWN else heapq.heappushpop
            add(self._worst, (*entry, card))

    def write(self, path: Path) -> None:
        """Write the page.

        Raises:
            TurnwatchError: the file cannot be written.
        """
        text = page(
            self._totals,
            cards=[card for _, _, card in sorted(self._worst, reverse=True)],
            left_out=self._found - len(self._worst),
            times=self._times,
            unread=self._unread,
            unread_more=self._unread_more,
        )
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TurnwatchError(f"{path}: the page cannot be written: {error.strerror or error}") from error


def _rank(turn: TurnState) -> _Rank:
    severity = SEVERITY_RANK[turn.verdict.severity] if turn.verdict is not None else -1
    return severity, turn.wasted_tool_calls, turn.wasted_usd, turn.duplicates

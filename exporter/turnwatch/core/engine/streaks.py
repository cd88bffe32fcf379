"""What comes in a row, whatever is asked."""

from __future__ import annotations

from typing import NamedTuple

from turnwatch.core.effects import holds_command
from turnwatch.core.engine.memory import add_number
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Digest, Evidence, same_page


class Streak:
    """Consecutive rounds of one kind.

    Attributes:
        rounds: Its length.
        numbers: The numbers of its calls (bounded); empty while there are none.
        novel_at_first: How much news there had been when it began.
    """

    __slots__ = ("_round", "novel_at_first", "numbers", "rounds")

    def __init__(self) -> None:
        self.rounds = 0
        self.novel_at_first = 0
        self.numbers: list[int] | tuple[int, ...] = ()  # most streaks never begin, and every turn has several
        self._round = -1

    def add(self, number: int, round_: int) -> None:
        """Add a call."""
        if not isinstance(self.numbers, list):
            self.numbers = []
        add_number(self.numbers, number)
        if round_ != self._round:
            self._round = round_
            self.rounds += 1

    def end(self) -> None:
        """Start again at nothing."""
        if self.rounds:
            self.rounds = 0
            self.numbers = ()
            self._round = -1


class _Kind(NamedTuple):
    """What an error is told by."""

    normal: Digest
    digitless: Digest | None
    simhash: int | None
    beyond: Digest | None

    def is_like(self, other: _Kind) -> bool:
        return (
            self.normal == other.normal
            or (self.digitless is not None and self.digitless == other.digitless)
            or (self.beyond is not None and self.beyond == other.beyond)
            or same_page(self.simhash, other.simhash)
        )


class ErrorStreak(Streak):
    """Errors without news between them, most of them of nearly the same text.

    Attributes:
        rounds: By how many rounds that text leads over others.
        in_a_row: The latest ones, all of them of nearly the same text.
    """

    __slots__ = ("_kind", "_last", "in_a_row")

    def __init__(self) -> None:
        super().__init__()
        self.in_a_row = Streak()
        self._kind: _Kind | None = None
        self._last: _Kind | None = None

    def add_error(self, error: Evidence, call: ToolCall, number: int, round_: int) -> None:
        """Add an error of a call."""
        # What is wrong with other commands may be as many facts as there are commands, but not that all are refused.
        beyond = None if holds_command(call) and call.outcome != "denied" else error.beyond(call.tool, call.args)
        kind = _Kind(error.normal, error.digitless, error.simhash, beyond)
        if self._last is not None and not kind.is_like(self._last):
            self.in_a_row.end()
        self._last = kind
        self.in_a_row.add(number, round_)
        if self.rounds and self._kind is not None and not kind.is_like(self._kind):
            if round_ == self._round:
                return
            # One error of another kind does not make the rest a different story.
            self.rounds -= 1
            if self.rounds:
                self._round = round_
                return
            self.numbers = ()
            self._round = -1
        self._kind = kind
        self.add(number, round_)


class Trouble:
    """What goes wrong in a row: made when something does, and dropped with the first news."""

    __slots__ = ("errors", "no_news", "unknown_tools")

    def __init__(self) -> None:
        self.errors = ErrorStreak()
        self.no_news = Streak()
        self.unknown_tools = Streak()

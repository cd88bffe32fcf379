"""What comes in a row, whatever is asked."""

from __future__ import annotations

from turnwatch.core.engine.memory import add_number
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


class ErrorStreak(Streak):
    """Errors without news between them, most of them of nearly the same text.

    Attributes:
        rounds: By how many rounds that text leads over others.
    """

    __slots__ = ("_digitless", "_normal", "_simhash")

    def __init__(self) -> None:
        super().__init__()
        self._normal: Digest | None = None
        self._digitless: Digest | None = None
        self._simhash: int | None = None

    def add_error(self, error: Evidence, number: int, round_: int) -> None:
        """Add an error."""
        if self.rounds and not self._is_like(error):
            if round_ == self._round:
                return
            # One error of another kind does not make the rest a different story.
            self.rounds -= 1
            if self.rounds:
                self._round = round_
                return
            self.numbers = ()
            self._round = -1
        self._normal, self._digitless, self._simhash = error.normal, error.digitless, error.simhash
        self.add(number, round_)

    def _is_like(self, error: Evidence) -> bool:
        return (
            error.normal == self._normal
            or (error.digitless is not None and error.digitless == self._digitless)
            or same_page(error.simhash, self._simhash)
        )


class Trouble:
    """What goes wrong in a row: made when something does, and dropped with the first news."""

    __slots__ = ("errors", "no_news", "unknown_tools")

    def __init__(self) -> None:
        self.errors = ErrorStreak()
        self.no_news = Streak()
        self.unknown_tools = Streak()

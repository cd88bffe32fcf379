"""What one tool, or the whole turn, keeps getting in a row whatever it asks."""

from __future__ import annotations

from turnwatch.core.engine.memory import add_number
from turnwatch.core.evidence import Digest, Evidence, same_page


class Streak:
    """Consecutive rounds of one kind.

    Attributes:
        rounds: Its length.
        numbers: The numbers of its calls (bounded).
    """

    __slots__ = ("_round", "numbers", "rounds")

    def __init__(self) -> None:
        self.rounds = 0
        self.numbers: list[int] = []
        self._round = -1

    def add(self, number: int, round_: int) -> int:
        """Add a call; the length in rounds."""
        add_number(self.numbers, number)
        if round_ != self._round:
            self._round = round_
            self.rounds += 1
        return self.rounds

    def end(self) -> None:
        """Start again at nothing."""
        if self.rounds:
            self.rounds = 0
            self.numbers = []
            self._round = -1


class ToolStreaks:
    """What the different calls of one tool have in common."""

    __slots__ = ("empty", "exact", "same")

    def __init__(self) -> None:
        self.exact: Digest | None = None
        self.empty = Streak()
        self.same = Streak()


class ErrorStreak(Streak):
    """Errors without news between them, most of them of nearly the same text."""

    __slots__ = ("_digitless", "_normal", "_simhash")

    def __init__(self) -> None:
        super().__init__()
        self._normal: Digest | None = None
        self._digitless: Digest | None = None
        self._simhash: int | None = None

    def add_error(self, error: Evidence, number: int, round_: int) -> int:
        """Add an error; by how many rounds its kind leads over others."""
        same = self.rounds > 0 and (
            error.normal == self._normal
            or (error.digitless is not None and error.digitless == self._digitless)
            or same_page(error.simhash, self._simhash)
        )
        if not same and self.rounds > 1:
            # One error of another kind does not make the rest a different story.
            self.rounds -= 1
            return self.rounds
        if not same:
            self.end()
        self._normal, self._digitless, self._simhash = error.normal, error.digitless, error.simhash
        return self.add(number, round_)

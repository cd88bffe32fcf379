"""Says what could not be read."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rich.console import Console

from turnwatch.cli.reading_bar import ReadingBar
from turnwatch.core.printable import printable
from turnwatch.sources.scan import Unread

UNREADABLE: Final = 2

# Of a file that is broken all over, so many places are named.
_PLACES_NAMED: Final = 20
_LEAST_COLUMNS: Final = 40


class UnreadPlaces:
    """Names what cannot be read, the first places of every file."""

    def __init__(self, bar: ReadingBar) -> None:
        self._bar = bar
        self._places: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._places)

    def name(self, item: Unread) -> None:
        """Say that this cannot be read, unless much else of the same file could not be either."""
        self._places[item.source] += 1
        if self._places[item.source] <= _PLACES_NAMED:
            self._bar.say(f"turnwatch: {printable(str(item))}")

    def name_the_rest(self) -> None:
        """Say how much more could not be read."""
        for source, number in self._places.items():
            if number > _PLACES_NAMED:
                self._bar.say(
                    f"turnwatch: {printable(source)}: {number - _PLACES_NAMED} more places that cannot be read"
                )


class Output(Console):
    """Standard output, for tables."""

    def __init__(self) -> None:
        super().__init__()
        # In fewer columns no table can be read; the terminal breaks the lines then.
        self.width = max(self.width, _LEAST_COLUMNS)

    def on_broken_pipe(self) -> None:
        """Leave it to ``ending_like_a_filter``; otherwise rich exits with 1."""
        raise BrokenPipeError

"""Names of agents, tools and files in columns that are too narrow for them."""

from __future__ import annotations

import re
from typing import Final, final

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.style import StyleType
from rich.text import Text

from turnwatch.core.printable import printable

_LEAST_WIDTH: Final = 8
_PIECE: Final = re.compile(r"[^\s_./:-]*[\s_./:-]+|[^\s_./:-]+")


def lines_of(name: str, width: int) -> list[str]:
    """The name in lines of so many cells, broken after its spaces and marks, in a word only where that is too long."""
    lines = [""]
    for piece in _PIECE.findall(name):
        if cell_len(lines[-1]) + cell_len(piece.rstrip()) <= width:
            lines[-1] += piece
            continue
        start, *rest = chop_cells(piece, width)
        lines += [start, *rest]
    return [line.rstrip() for line in lines if line.strip()]


@final
class FoldedName:
    """A name from outside, for a cell of a table: ``printable``, and folded to the column's width.

    Args:
        name: The name.
        style: As rich takes it.
    """

    def __init__(self, name: str, style: StyleType = "") -> None:
        self._name = printable(name)
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What rich prints."""
        yield Text("\n".join(lines_of(self._name, options.max_width)), self._style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """The widths between which rich may choose."""
        whole = cell_len(self._name)
        return Measurement(min(whole, _LEAST_WIDTH), whole)

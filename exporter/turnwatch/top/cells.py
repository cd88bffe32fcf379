"""Text in a given number of terminal cells, whatever it holds."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from turnwatch.core.printable import printable

_MORE = "…"


def fitted(text: str, width: int, *, is_right: bool = False) -> str:
    """A text from outside in exactly ``width`` cells: cut with an ellipsis, or filled up with spaces."""
    if width <= 0:
        return ""
    text = printable(text)
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + _MORE
    return " " * (width - length) + text if is_right else text + " " * (width - length)

"""Text in a given number of terminal cells, whatever it holds."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

_MORE = "…"


def printable(text: str) -> str:
    """A text from outside, in which a terminal's control characters do nothing."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "�" for char in text)


def fitted(text: str, width: int, *, is_right: bool = False) -> str:
    """A text from outside in exactly ``width`` cells: cut with an ellipsis, or filled up with spaces."""
    if width <= 0:
        return ""
    text = printable(text)
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + _MORE
    return " " * (width - length) + text if is_right else text + " " * (width - length)

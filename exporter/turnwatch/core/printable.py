"""How a text from outside is shown on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every character that a terminal would obey replaced by "�": no escape, no line, no direction."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "�" for char in text)

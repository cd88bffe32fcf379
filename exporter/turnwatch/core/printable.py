"""How texts from outside and numbers of things are shown on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every character that a terminal would obey replaced by "�": no escape, no line, no direction."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "�" for char in text)


def many(number: int, thing: str) -> str:
    """A number of things, in the plural where there is not one."""
    return f"{number} {thing}{'' if number == 1 else 's'}"

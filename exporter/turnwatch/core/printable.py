"""How texts from outside, numbers of things and dollars are shown to people."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with every character that a terminal would obey replaced by "�": no escape, no line, no direction."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "�" for char in text)


def many(number: int, thing: str) -> str:
    """A number of things, in the plural where there is not one: 1 call, 1,234 calls."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def dollars(usd: float) -> str:
    """Dollars, with as many digits as small amounts need: $1,234.50, $0.00, $0.0312."""
    return f"${usd:,.2f}" if usd >= 0.1 or not usd else f"${usd:,.4f}"

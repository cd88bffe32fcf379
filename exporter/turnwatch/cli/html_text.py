"""Text from outside and numbers, as an HTML page may show them."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Final

from turnwatch.core.printable import printable

_LONGEST: Final = 120


def shown(text: str, longest: int = _LONGEST) -> str:
    """Escaped text, without characters that do something (control, direction of writing), cut in the middle."""
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return html.escape(printable(text))


def large(number: int) -> str:
    """A number that may be large: 1,234 or 5.6 M."""
    for unit, name in ((1_000_000_000, "G"), (1_000_000, "M")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return f"{number:,}"


def duration(seconds: float) -> str:
    """A time span in the two units that matter."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    for unit, name, below, below_name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            rest = whole % unit // below
            return f"{whole // unit} {name}" + (f" {rest} {below_name}" if rest else "")
    return f"{whole} s"


def moment(at: float) -> str:
    """A time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):  # a file may claim any year
        return "unknown time"

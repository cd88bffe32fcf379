"""How long, as people write it on the command line."""

from __future__ import annotations

import re
from typing import Final

import typer

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "": 1.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", re.ASCII)
# Shorter is no interval to scrape or to look in; longer is a slip.
_SHORTEST: Final = 0.05
_LONGEST: Final = 86_400.0


def seconds_of(text: str) -> float:
    """Read a duration: 500ms, 15s, 1.5 h; a number alone is seconds.

    Raises:
        typer.BadParameter: It is none, or less than 50 ms or more than a day.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter("wants a duration such as 500ms, 15s or 1m")
    seconds = float(found[1]) * _UNITS[found[2]]
    if not _SHORTEST <= seconds <= _LONGEST:
        raise typer.BadParameter("wants 50ms at least and 1d at most")
    return seconds

"""Which name was meant, where one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Collection


def did_you_mean(name: str, known: Collection[str], prefix: str = "") -> str:
    """The question after the known name that is nearest, or "" where none is near.

    Args:
        name: What was written.
        known: What could have been.
        prefix: Begins all of these names, and is left out of what is compared: it would make all of them near.
    """
    near = difflib.get_close_matches(name.removeprefix(prefix), [each.removeprefix(prefix) for each in known], 1)
    return f"did you mean {prefix}{near[0]}?" if near else ""


def unknown_key(key: str, allowed: Collection[str]) -> str:
    """What is wrong with a key that is none of the allowed ones, which are named in their order."""
    hint = did_you_mean(key, allowed)
    return f"unknown key; allowed are {', '.join(allowed)}" + (f"; {hint}" if hint else "")

"""Where the pack's sources are: in the installed package, or at the root of a source checkout."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from turnwatch.errors import TurnwatchError

MIXIN: Final = "mixin.libsonnet"


class NoPackError(TurnwatchError):
    """A folder does not hold what a pack consists of."""


def pack_home() -> Path:
    """Return the folder that holds ``mixin.libsonnet``, ``alert_rules``, ``dashboards`` and ``runbooks``.

    Raises:
        NoPackError: Neither the installed package nor a checkout around it has them.
    """
    package = Path(str(resources.files("turnwatch.pack"))).parent
    candidates = (package / "_pack", package.parent.parent)
    for candidate in candidates:
        if (candidate / MIXIN).is_file():
            return candidate
    raise NoPackError(f"{MIXIN} is neither in {candidates[0]} nor in {candidates[1]}")

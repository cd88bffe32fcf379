"""What the severities of verdicts and alerts mean, wherever a command shows them first."""

from __future__ import annotations

from typing import Final

SEVERITIES: Final = (
    "stuck is a verdict that the turn makes no progress: its alert is critical, and pages. "
    "warn says that a pattern has begun: its alert is a warning, and does not page."
)

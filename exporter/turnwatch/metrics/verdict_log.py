"""Which turn and conversation a verdict is about: the log line that whoever is paged looks for."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from typing import Final, final

from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.printable import printable
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import SEVERITY_RANK, Verdict

LINES_PER_MINUTE: Final = 30

_LEVELS: Final = {"stuck": logging.WARNING, "warn": logging.INFO}
_BARE: Final = re.compile(r"[\w.:/@+-]+")

logger = logging.getLogger("turnwatch.verdicts")


@final
class VerdictLog:
    """A verdict listener (see ``Watch.on_verdict``) that writes one logfmt line a turn, kind and rise of severity.

    "stuck" is a warning, "warn" is information, "observe" is not logged. A line holds no arguments and no results.

    Args:
        per_minute: Lines in one minute; what is left out is counted in the next line.
        clock: Seconds that never go backwards.
    """

    def __init__(
        self,
        per_minute: int = LINES_PER_MINUTE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = fork_safe_lock()
        self._minute_began = -60.0
        self._written = 0
        self._left_out = 0

    def __call__(self, turn: TurnState, verdict: Verdict) -> None:
        """Log the verdict, unless the turn had one of its kind that was as grave."""
        level = _LEVELS.get(verdict.severity)
        if level is None or not logger.isEnabledFor(level) or not _is_a_rise(turn, verdict):
            return
        left_out = self._take_a_line()
        if left_out is None:
            return
        fields = {
            "verdict": verdict.severity,
            "kind": verdict.kind,
            "agent": turn.agent or "unknown",
            "tool": verdict.tool,
            "conversation": turn.conversation_id,
            "turn": turn.turn_id,
            "trace": turn.trace_id,
            "reason": verdict.reason,
            "left_out": str(left_out) if left_out else None,
        }
        logger.log(level, "%s", " ".join(f"{name}={_quoted(value)}" for name, value in fields.items() if value))

    def _take_a_line(self) -> int | None:
        """How many verdicts were left out since the last line; None when this one is to be left out, too."""
        with self._lock:
            now = self._clock()
            if now - self._minute_began >= 60.0:
                self._minute_began, self._written = now, 0
            if self._written >= self._per_minute:
                self._left_out += 1
                return None
            self._written += 1
            left_out, self._left_out = self._left_out, 0
            return left_out


def _is_a_rise(turn: TurnState, verdict: Verdict) -> bool:
    for each in turn.verdicts:
        if each is verdict:
            break
        if each.kind == verdict.kind and SEVERITY_RANK[each.severity] >= SEVERITY_RANK[verdict.severity]:
            return False
    return True


def _quoted(value: str) -> str:
    """A value as logfmt has it. Names come from outside: none may break the line."""
    return value if _BARE.fullmatch(value) else json.dumps(printable(value), ensure_ascii=False)

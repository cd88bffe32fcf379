"""Whether a run did what it was for: from a file of outcomes, from the runs themselves, or from how they ended."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson

from turnwatch.errors import TurnwatchError
from turnwatch.sources.scan import ScannedTurn

BY_STOP_REASON: Final = "stop_reason"

_SUCCESS: Final = frozenset({"success", "succeeded", "ok", "pass", "passed", "resolved", "solved", "true", "yes", "1"})
_FAILURE: Final = frozenset({"failure", "failed", "fail", "error", "unresolved", "unsolved", "false", "no", "0"})
_FAILED_ENDINGS: Final = frozenset(
    {
        "error",
        "max_iterations",
        "max_tool_calls",
        "max_seconds",
        "max_usd",
        "max_turn_tokens",
        "loop_detected",
        "goal_failed",
    }
)
_GUESSED: Final = "ending"
_IDS: Final = ("turn_id", "conversation_id", "trajectory_id", "id")
_VERDICTS: Final = ("outcome", "success", "resolved", "stuck")


class OutcomesError(TurnwatchError):
    """A file of outcomes cannot be read. The message names file and line."""


class Outcome(StrEnum):
    """What came of a run."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class Outcomes:
    """Says of each turn whether it succeeded.

    Args:
        given: A file with one outcome a line (JSON lines or CSV), ``stop_reason`` for how the turns ended, or None for
            what the runs' own files say, and how they ended where those say nothing.

    Attributes:
        known_from: How many outcomes came from where: "given", "recorded" (the runs' own files) or "ending".

    Raises:
        OutcomesError: The file cannot be read.
    """

    def __init__(self, given: str | None = None) -> None:
        self.known_from: Counter[str] = Counter()
        self._only_endings = given == BY_STOP_REASON
        self._asks_file = given is not None and not self._only_endings
        self._given = dict(_read(Path(given))) if given is not None and self._asks_file else {}

    def of(self, scanned: ScannedTurn) -> tuple[Outcome, bool]:
        """The outcome of a turn, and whether it is a guess: nobody recorded it, and how the turn ended may mislead."""
        outcome, source = self._found(scanned)
        if outcome is Outcome.UNKNOWN:
            return outcome, False
        self.known_from[source] += 1
        return outcome, source == _GUESSED

    @property
    def fits_nothing(self) -> bool:
        """Whether a file of outcomes was given, and none of its ids was that of a turn so far."""
        return self._asks_file and not self.known_from

    def _found(self, scanned: ScannedTurn) -> tuple[Outcome, str]:
        turn = scanned.state
        if self._asks_file:
            # Those the file leaves out are unknown: people label what they have looked at.
            given = self._given.get(turn.turn_id) or self._given.get(turn.conversation_id or "")
            return given or Outcome.UNKNOWN, "given"
        if not self._only_endings and scanned.outcome is not None:
            return _outcome(scanned.outcome), "recorded"
        if turn.stop_reason == "final_answer":
            return Outcome.SUCCESS, _GUESSED
        return (Outcome.FAILURE if turn.stop_reason in _FAILED_ENDINGS else Outcome.UNKNOWN), _GUESSED


def _outcome(said: object) -> Outcome:
    word = str(said).strip().lower()
    if word in _SUCCESS:
        return Outcome.SUCCESS
    return Outcome.FAILURE if word in _FAILURE else Outcome.UNKNOWN


def _read(path: Path) -> Iterator[tuple[str, Outcome]]:
    for number, row in _rows(path):
        identity = next((str(row[name]) for name in _IDS if row.get(name)), None)
        verdict = next((name for name in _VERDICTS if row.get(name) not in (None, "")), None)
        if identity is None:
            raise OutcomesError(f"{path}:{number}: no id; one of {', '.join(_IDS)} must be there")
        if verdict is None:
            continue
        outcome = _outcome(row[verdict])
        if verdict == "stuck" and outcome is not Outcome.UNKNOWN:
            outcome = Outcome.FAILURE if outcome is Outcome.SUCCESS else Outcome.SUCCESS
        yield identity, outcome


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                yield from enumerate(csv.DictReader(file), 2)
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = orjson.loads(line)
                    if not isinstance(row, dict):
                        raise OutcomesError(f"{path}:{number}: not an object")
                    yield number, row
    except OSError as error:
        raise OutcomesError(
            f"{path}: cannot be read: {error.strerror or type(error).__name__}"
            f" (--outcomes takes a file, or {BY_STOP_REASON})"
        ) from None
    except UnicodeDecodeError:
        raise OutcomesError(f"{path}: is not UTF-8 text") from None
    except orjson.JSONDecodeError:
        raise OutcomesError(f"{path}:{number}: not JSON; a file of outcomes is JSON lines or CSV") from None
    except csv.Error as error:
        raise OutcomesError(f"{path}: not CSV: {error}") from None

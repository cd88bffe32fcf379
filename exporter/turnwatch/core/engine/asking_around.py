"""Does it ask in ever new words and get the same?"""

from __future__ import annotations

from typing import Final

from turnwatch.core.effects import asks_in_words, is_polling, takes_note
from turnwatch.core.engine.finding import Finding, severity
from turnwatch.core.engine.streaks import Streak
from turnwatch.core.engine.thresholds import Thresholds
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Digest, Evidence

_MAX_TOOLS: Final = 256


class _Tool:
    """What the latest calls of one tool have in common, whatever they asked."""

    __slots__ = ("bag", "empty", "exact", "number", "same")

    def __init__(self) -> None:
        self.exact: Digest | None = None
        self.bag: Digest | None = None
        self.number = 0
        self.empty: Streak | None = None
        self.same: Streak | None = None


class AskingAround(dict[str, _Tool]):
    """The results of each tool's calls that do not change state, in a row. Cleared when state changes."""

    __slots__ = ()

    def observe(
        self,
        call: ToolCall,
        result: Evidence,
        known: bool,
        number: int,
        round_: int,
        novel: int,
        t: Thresholds,
    ) -> Finding | None:
        """Note one more result.

        Args:
            call: The call.
            result: Its result.
            known: Whether this same call had this result before.
            number: The call's number.
            round_: Its round.
            novel: How much news there has been in the turn.
            t: The thresholds.
        """
        empty = result.empty
        tool = self.get(call.tool)
        if tool is None:
            if len(self) >= _MAX_TOOLS:
                del self[next(iter(self))]
            tool = self[call.tool] = _Tool()
        same = tool.exact == result.exact
        before = tool.number
        if not same:
            # The same documents in another order are the same result.
            bag = result.bag
            same = tool.bag == bag and not empty
            tool.exact, tool.bag = result.exact, bag
        if not same:
            tool.number = number
            tool.same = None
        if empty:
            if is_polling(call) or takes_note(call):
                return None
            tool.empty = tool.empty or Streak()
            _add(tool.empty, number, round_, novel, t)
            return _empty(call.tool, tool.empty, t)
        tool.empty = None
        if not same or known or not asks_in_words(call):
            return None
        if tool.same is None:
            tool.same = Streak()
            _add(tool.same, before, round_ - 1, novel, t)
        _add(tool.same, number, round_, novel, t)
        return _reworded(call.tool, tool.same, t)


def _add(streak: Streak, number: int, round_: int, novel: int, t: Thresholds) -> None:
    if streak.rounds and novel - streak.novel_at_first > t.reworded_novel * streak.rounds:
        streak.end()
    if not streak.rounds:
        streak.novel_at_first = novel
    streak.add(number, round_)


def _empty(tool: str, streak: Streak, t: Thresholds) -> Finding | None:
    found = severity(streak.rounds, t.empty_warn, t.empty_stuck)
    return found and Finding(
        "empty_results",
        found,
        streak.numbers,
        f"{tool} found nothing {streak.rounds} times in a row, whatever the arguments.",
        "the result: nothing",
        "a result that is not empty, or news from another call",
    )


def _reworded(tool: str, streak: Streak, t: Thresholds) -> Finding | None:
    found = severity(streak.rounds, t.reworded_warn, t.reworded_stuck)
    return found and Finding(
        "stale_repeat",
        found,
        streak.numbers,
        f"{tool} gave one and the same result {streak.rounds} times in a row for differently worded arguments.",
        "the tool and its result",
        "a different result, or news from another call",
    )

"""Does the model keep saying the same and call nothing?"""

from __future__ import annotations

from typing import Final

from turnwatch.core.engine.finding import Finding
from turnwatch.core.engine.memory import Memory
from turnwatch.core.engine.streaks import Streak
from turnwatch.core.engine.thresholds import Thresholds
from turnwatch.core.evidence import Digest, Evidence

_REPLY: Final = "\0reply"


class Monologue:
    """The latest text replies; a tool call between them ends it."""

    __slots__ = ("_streak", "_text")

    def __init__(self) -> None:
        self._streak = Streak()
        self._text: Digest | None = None

    def reply(self, text: Evidence, number: int, round_: int) -> int:
        """Note a reply; how often in a row it was given."""
        if text.normal != self._text:
            self._streak.end()
            self._text = text.normal
        self._streak.add(number, round_)
        return self._streak.rounds


def replied_alike(memory: Memory, epoch: int, text: Evidence, agent: str, number: int, turn: int, novel: int) -> int:
    """In how many turns this agent has given this reply, neither a user nor news having come between."""
    question = memory.question(hash((agent, _REPLY)), epoch, number, turn)
    if question.calls == 1:
        question.answer_first(text.exact, novel, None, 0)
        return 1
    answer = question.answer(text, number, turn, novel)
    if answer.numbers[-1] != number or answer.last_round != turn:
        answer.again(number, turn)
    return 0 if answer.nearly or answer.novel_at_first != novel else answer.rounds


def monologue(rounds: int, number: int, t: Thresholds) -> Finding | None:
    """The same text again and again."""
    if rounds < t.monologue_stuck:
        return None
    return Finding(
        "monologue",
        "stuck",
        [number],
        f"The same text was replied {rounds} times and nothing else came of it.",
        "the text of the reply",
        "a different reply, or a tool call",
    )

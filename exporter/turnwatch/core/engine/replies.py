"""Does the model keep saying the same and call nothing?"""

from __future__ import annotations

from typing import Final

from turnwatch.core.engine.finding import Finding
from turnwatch.core.engine.streaks import Streak
from turnwatch.core.engine.thresholds import Thresholds
from turnwatch.core.evidence import Digest, Evidence

# Texts of a conversation that are known when they come again.
_MAX_REPLIES: Final = 64
_SENTENCE_WORDS: Final = 3


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


class Refrains:
    """What the agents of a conversation keep replying, nothing new having been found or said between. Bounded."""

    __slots__ = ("_given", "_said")

    def __init__(self) -> None:
        self._given: dict[tuple[str, Digest], tuple[int, int, int]] = {}  # in how many turns; the last; news so far
        self._said: dict[Digest, None] = {}

    def __len__(self) -> int:
        return len(self._given)

    def reply(self, text: Evidence, agent: str, turn: int, news: int) -> int:
        """Note a reply; in how many turns this agent has given it, 1 as long as no other agent repeats itself too.

        A text that nobody said before is news as well: whoever answers each new draft in the same words goes on. One
        agent alone may well say the same of each thing that it is asked about, and what is picked from a few answers
        says nothing of what was asked: agents that sort a thousand messages in words like "spam" and "ok" are no loop.

        Args:
            text: The reply.
            agent: Whose it is.
            turn: A number of its turn.
            news: How much else has been new in the conversation.
        """
        said = text.normal
        if said not in self._said:
            self._given.clear()
        self._said.pop(said, None)
        self._said[said] = None
        if len(self._said) > _MAX_REPLIES:
            del self._said[next(iter(self._said))]
        turns, last, news_then = self._given.get((agent, said), (0, -1, news))
        if news_then != news:
            turns = 0
        if turn != last:
            turns += 1
        self._given.pop((agent, said), None)
        self._given[agent, said] = (turns, turn, news)
        if len(self._given) > _MAX_REPLIES:
            del self._given[next(iter(self._given))]
        if _is_picked(text):
            return 0
        others = any(who != agent and times > 1 and then == news for (who, _), (times, _, then) in self._given.items())
        return turns if others else 1


def _is_picked(text: Evidence) -> bool:
    """Whether a reply is a label, or a structure for a program to read, rather than a sentence."""
    head = text.head.strip()
    is_label = head.isascii() and len(head.split(None, _SENTENCE_WORDS)) < _SENTENCE_WORDS
    return is_label or head.startswith(("{", "["))


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

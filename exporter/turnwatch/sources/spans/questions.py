"""Has a conversation's model been asked this before?

Two agents that go through many documents may say the same two sentences of each. What is said in answer to something
new is no sign of a loop, so only answers to questions that came before are judged.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from turnwatch.core.latest import keep_latest
from turnwatch.sources.spans.messages import question_in

_MAX_QUESTIONS: Final = 16_384


class Questions:
    """Remembers digests of the questions of each conversation. Bounded; the oldest are forgotten."""

    def __init__(self) -> None:
        self._asked: OrderedDict[int, None] = OrderedDict()

    def is_new(self, conversation_id: str, attributes: Mapping[str, Any]) -> bool:
        """Note the question that a model call answers; whether nobody had asked it. False where none is told of."""
        question = question_in(attributes)
        if not question:
            return False
        key = hash((conversation_id, question))
        is_new = key not in self._asked
        keep_latest(self._asked, key, None, _MAX_QUESTIONS)
        return is_new

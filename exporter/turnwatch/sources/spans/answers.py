"""What came of the tool calls that a reply asked for, as the model was told with its next call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turnwatch.core.events import MISSING
from turnwatch.core.evidence import Evidence
from turnwatch.sources.spans.answered import Answered
from turnwatch.sources.spans.logs import Kept
from turnwatch.sources.spans.messages import Asked
from turnwatch.sources.spans.results import opened
from turnwatch.sources.spans.values import is_redacted


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a tool call, as far as the model was told."""

    evidence: Evidence | None
    failed: bool


def results_of(asked: list[Asked], answers: list[Answered], logged: Kept[str, Any]) -> dict[int, Result]:
    """The result of each call of a reply, by the call's id, or by order where there are no ids."""
    if not any(request.call_id for request in asked):
        answers = [Answered("", answer.value, answer.failed) for answer in answers]
    by_id = {answer.call_id: answer for answer in answers if answer.call_id}
    results: dict[int, Result] = {}
    unnamed = [answer for answer in answers if not answer.call_id][-len(asked) :]
    for number, request in enumerate(asked):
        answer = by_id.get(request.call_id) if request.call_id else None
        if answer is None and not by_id and len(unnamed) == len(asked):
            answer = unnamed[number]
        if answer is None and request.call_id in logged:
            answer = Answered(request.call_id, logged[request.call_id])
        if answer is not None:
            results[number] = _result(answer)
    return results


def _result(answer: Answered) -> Result:
    if answer.value is MISSING or is_redacted(answer.value):
        return Result(None, answer.failed)
    result = opened(answer.value)
    return Result(Evidence.of(result.value), answer.failed or result.failed)

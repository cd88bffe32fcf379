"""What came of the tool calls that a reply asked for, as the model was told with its next call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnwatch.core.events import MISSING, ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.sources.spans.answered import Answered, answered_to
from turnwatch.sources.spans.logs import Kept
from turnwatch.sources.spans.messages import Asked, asked_before
from turnwatch.sources.spans.results import opened
from turnwatch.sources.spans.values import is_redacted


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a tool call, as far as the model was told."""

    evidence: Evidence | None
    failed: bool


def calls_made(
    asked: Sequence[Asked], attributes: Mapping[str, Any], logged: Kept[str, Any], known: Collection[str] | None
) -> list[tuple[Asked, Result | None]]:
    """The calls of a reply that were made, each with its result where the next request tells it.

    No provider takes a request that leaves out the result of a call. So where a request tells of results, a call of
    which it says nothing was never made: the provider made it itself, or the reply was given up and asked for again.

    Args:
        asked: The calls.
        attributes: The messages of the request, among others.
        logged: Results that log events told, by the call's id.
        known: The ids of earlier calls; None where the request may have been sent before the reply had come.
    """
    results = results_of(asked, attributes, logged)
    made = [(request, results.get(number)) for number, request in enumerate(asked)]
    if known is None or len(results) == len(asked) or not all(request.call_id for request in asked):
        return made
    answers = answered_to(attributes)
    if results and answers:
        return [(request, result) for request, result in made if result is not None]
    return [] if any(answer.call_id in known for answer in answers) else made


def results_of(
    asked: Sequence[Asked | ToolCall], attributes: Mapping[str, Any], logged: Kept[str, Any]
) -> dict[int, Result]:
    """The result of each of these calls, in the next request: by the call's id, or by order where ids do not help.

    Args:
        asked: The calls.
        attributes: The messages of the request, among others.
        logged: Results that log events told, by the call's id.
    """
    answers = answered_to(attributes)
    ids = [request.call_id or "" for request in asked]
    by_id = {answer.call_id: answer for answer in answers if answer.call_id}
    if not any(ids) or (by_id and by_id.keys().isdisjoint(ids) and _are_latest(ids, attributes)):
        answers = [Answered("", answer.value, answer.failed) for answer in answers]
        by_id = {}
    results: dict[int, Result] = {}
    unnamed = [answer for answer in answers if not answer.call_id][-len(asked) :]
    for number, call_id in enumerate(ids):
        answer = by_id.get(call_id) if call_id else None
        if answer is None and not by_id and len(unnamed) == len(asked):
            answer = unnamed[number]
        if answer is None and call_id in logged:
            answer = Answered(call_id, logged[call_id])
        if answer is not None:
            results[number] = _result(answer)
    return results


def _are_latest(ids: list[str], attributes: Mapping[str, Any]) -> bool:
    """Whether the latest reply in a request asked for these calls: OpenAI's Responses have ids for items and calls.

    A request without any reply goes on with one that the provider keeps, which is the latest.
    """
    before, replies = asked_before(attributes)
    return not replies or [request.call_id for request in before] == ids


def _result(answer: Answered) -> Result:
    if answer.value is MISSING or is_redacted(answer.value):
        return Result(None, answer.failed)
    result = opened(answer.value)
    return Result(Evidence.of(result.value), answer.failed or result.failed)

"""Which tool calls did a reply ask for, where its span or that of a call says too little?"""

from __future__ import annotations

from turnwatch.core.events import ToolCall
from turnwatch.sources.spans.facts import ModelFact, is_same_tool_name
from turnwatch.sources.spans.messages import Asked, asked_before
from turnwatch.sources.spans.scope import Scope


def fill_arguments(call: ToolCall, asked: list[Asked]) -> None:
    """Take a call's arguments from the reply that asked for it: by id, or without ids as the first of its tool left.

    A failed call may without ids be any of its tool: where others succeeded, their spans have what it lacks.
    """
    by_id = bool(call.call_id) and any(request.call_id for request in asked)
    if by_id:
        requests = [request for request in asked if request.call_id == call.call_id]
    else:
        requests = [request for request in asked if is_same_tool_name(request.tool, call.tool)]
    if len(requests) == 1 or (requests and (by_id or call.outcome != "error")):
        asked.remove(requests[0])
        call.args = requests[0].arguments


def asked_before_now(scope: Scope, fact: ModelFact) -> list[Asked]:
    """The calls of a reply that was not on its span, out of the next request; other requests may tell of them again."""
    if not fact.attributes:
        return []
    asked, replies = asked_before(fact.attributes)
    is_new = replies > scope.replies_told
    scope.replies_told = max(scope.replies_told, replies)
    known = scope.call_ids or {}
    if asked and all(request.call_id in known for request in asked):
        scope.unread_reply = None  # nothing went on with that reply: its stream was broken off
    return [request for request in asked if (request.call_id not in known if request.call_id else is_new)]

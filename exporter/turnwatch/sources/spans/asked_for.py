"""Which of the tool calls that a reply asked for is this one, whose span says too little?"""

from __future__ import annotations

from turnwatch.core.events import ToolCall
from turnwatch.sources.spans.facts import is_same_tool_name
from turnwatch.sources.spans.messages import Asked


def fill_arguments(call: ToolCall, asked: list[Asked]) -> None:
    """Take a call's arguments from the reply that asked for it: by its id, or else as the first of its tool left.

    A failed call that has no id may be any of its tool: where others succeeded, their spans have what it lacks.
    """
    if call.call_id:
        requests = [request for request in asked if request.call_id == call.call_id]
    else:
        requests = [request for request in asked if is_same_tool_name(request.tool, call.tool)]
    if len(requests) == 1 or (requests and (call.call_id or call.outcome != "error")):
        asked.remove(requests[0])
        call.args = requests[0].arguments

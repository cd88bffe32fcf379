"""Why a turn ended, as far as its agent's span tells."""

from __future__ import annotations

from typing import Final

from turnwatch.core.events import STOP_REASONS
from turnwatch.sources.spans.messages import wants_tools
from turnwatch.sources.spans.span import SpanData

# Classes of errors by which frameworks cut a turn short, by a word in their names.
_LIMITS: Final = (
    ("maxturns", "max_iterations"),
    ("recursion", "max_iterations"),
    ("llmcallslimit", "max_iterations"),
    ("maxiterations", "max_iterations"),
    ("maxsteps", "max_iterations"),
    ("usagelimit", "max_iterations"),
    ("cancelled", "user_cancelled"),
    ("keyboardinterrupt", "user_cancelled"),
)


def is_last_reply(span: SpanData) -> bool:
    """Whether a sub-agent ended with this model call, which failed or asked for no tool."""
    return span.shape.is_of_sub_agent and (span.failed or wants_tools(span.attributes) is False)


def stop_reason_of(span: SpanData) -> str:
    """The stop reason that a turn's own span gives."""
    said = span.attributes.get("agent.stop_reason")
    if said in STOP_REASONS:
        return str(said)
    error_type = span.attributes.get("error.type")
    if not span.failed and error_type is None:
        return "final_answer"
    names = [str(error_type or ""), span.status_text[:200]]
    names.extend(
        str(event.attributes.get("exception.type") or "") for event in span.events if event.name == "exception"
    )
    text = " ".join(names).replace("_", "").lower()
    for word, reason in _LIMITS:
        if word in text:
            return reason
    return "error"

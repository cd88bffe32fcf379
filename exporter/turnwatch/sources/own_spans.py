"""The spans turnwatch opens itself: agent.turn, llm.chat, tool.execute.

They carry turnwatch.counted, so that turnwatch's own span processor and service do not count the same
call twice. Where another instrumentation's span for the same thing is current, none is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

try:
    from opentelemetry import context as otel_context
    from opentelemetry import trace
except ImportError:  # the spans are optional: extra "otel"
    otel_context = trace = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from turnwatch.core.events import Usage
    from turnwatch.core.verdict import Verdict

Attributes = Mapping[str, str | int | float | bool]

_OWN: Final = "turnwatch-own-span"
_COUNTED: Final = "turnwatch.counted"
_OPERATION: Final = "gen_ai.operation.name"
_SAME_THING: Final = {
    "invoke_agent": frozenset({"AGENT", "agent", "workflow"}),
    "chat": frozenset({"LLM", "generation"}),
    "execute_tool": frozenset({"TOOL", "tool"}),
}
_KIND_ATTRIBUTES: Final = ("openinference.span.kind", "traceloop.span.kind", "langfuse.observation.type")


class OwnSpan:
    """One open span of turnwatch's, current until it is ended.

    Use ``open_span``; None stands for "no span" everywhere, so that a process without OpenTelemetry pays nothing.

    Args:
        span: The span.
        around: The context in which it was opened.
    """

    __slots__ = ("_around", "_has_ended", "_span")

    def __init__(self, span: Span, around: Context) -> None:
        self._span = span
        self._around = around
        self._has_ended = False
        otel_context.attach(otel_context.set_value(_OWN, self, trace.set_span_in_context(span, around)))

    def as_context(self) -> Context:
        """A context in which this span is current."""
        return trace.set_span_in_context(self._span)

    def set(self, attributes: Attributes) -> None:
        """Set attributes."""
        self._span.set_attributes(attributes)

    def event(self, name: str, attributes: Attributes) -> None:
        """Add an event."""
        self._span.add_event(name, attributes)

    def end(self, error_type: str | None = None) -> None:
        """End the span, with an error's class but never its text: that may hold arguments."""
        if error_type is not None:
            self._span.set_attribute("error.type", error_type)
            self._span.set_status(trace.Status(trace.StatusCode.ERROR))
        self._has_ended = True
        try:
            # Not by a token, which wants the context that the span was opened in and complains of any other.
            if otel_context.get_value(_OWN) is self:
                otel_context.attach(self.around_ended(self._around))
        finally:
            self._span.end()

    @staticmethod
    def around_ended(context: Context) -> Context:
        """A context, or the nearest around it in which no span of turnwatch's is current that has ended.

        Turns that generators hold open end in any order, and in another context than they were opened in.
        """
        own = context.get(_OWN)
        while isinstance(own, OwnSpan) and own._has_ended and trace.get_current_span(context) is own._span:
            context = own._around
            own = context.get(_OWN)
        return context


def open_span(
    name: str, operation: str, attributes: Attributes, *, client: bool = False, parent: OwnSpan | None = None
) -> OwnSpan | None:
    """Start a span and make it current.

    Args:
        name: agent.turn, llm.chat or tool.execute.
        operation: The GenAI convention's operation: invoke_agent, chat or execute_tool.
        attributes: Set at the start, so that samplers see them.
        client: The work is done by a hosted service.
        parent: The parent where no span is current: a thread does not inherit the turn's.

    Returns:
        The span; None without OpenTelemetry, without a configured SDK, or beside another
        instrumentation's span for the same thing.
    """
    if trace is None:
        return None
    if mark_current_span(operation):
        return None
    around = OwnSpan.around_ended(otel_context.get_current())
    current = trace.get_current_span(around)
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        return None
    in_thread = parent is not None and not current.get_span_context().is_valid
    span = provider.get_tracer("turnwatch").start_span(
        name,
        context=parent.as_context() if parent is not None and in_thread else around,
        kind=trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL,
        attributes={_OPERATION: operation, _COUNTED: True, **attributes},
    )
    return OwnSpan(span, around)


def mark_current_span(operation: str) -> bool:
    """Say on the current span, where it is another instrumentation's for the same call, that the call is counted.

    An agent's span is not marked: its calls may be counted elsewhere.

    Returns:
        Whether the current span stands for the same thing.
    """
    if trace is None:
        return False
    current = trace.get_current_span()
    if not current.is_recording() or not _stands_for(current, operation):
        return False
    if operation != "invoke_agent":
        current.set_attribute(_COUNTED, True)
    return True


def _stands_for(span: Any, operation: str) -> bool:
    attributes = getattr(span, "attributes", None)
    if not attributes or attributes.get(_COUNTED):
        return False
    if attributes.get(_OPERATION) == operation:
        return True
    kinds = _SAME_THING[operation]
    return any(attributes.get(key) in kinds for key in _KIND_ATTRIBUTES)


def verdict_attributes(verdict: Verdict) -> dict[str, str | bool]:
    """What a span says of a verdict."""
    return {"loop.detected": True, "loop.reason": verdict.reason, "loop.kind": verdict.kind}


def usage_attributes(usage: Usage) -> dict[str, int]:
    """What a span says of a model call's tokens."""
    attributes = {"gen_ai.usage.input_tokens": usage.input, "gen_ai.usage.output_tokens": usage.output}
    if usage.cache_read:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read
    if usage.cache_write:
        attributes["gen_ai.usage.cache_write.input_tokens"] = usage.cache_write
    if usage.reasoning:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
    return attributes

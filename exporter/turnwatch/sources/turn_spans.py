"""The spans of a turn by hand: its own, and one for each of its calls. A fault in one costs that span only."""

from __future__ import annotations

from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.providers import provider_by_name
from turnwatch.core.quietly import Quietly
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.sources.own_spans import OwnSpan, open_span, usage_attributes, verdict_attributes

_Attributes = dict[str, str | int | float | bool]


class TurnSpans:
    """Opens and ends the spans of one turn; none at all where the settings want none.

    Args:
        state: The turn.
    """

    __slots__ = ("_quietly", "_state", "_turn")

    def __init__(self, state: TurnState) -> None:
        self._state = state
        self._quietly = Quietly(state.watch, "a span")
        self._turn: OwnSpan | None = None

    # The turn

    def turn_begins(self, *, hosted: bool) -> None:
        """Open the turn's span. Of an agent that runs in another service it is a CLIENT span."""
        with self._quietly:
            attributes: _Attributes = {"gen_ai.agent.name": self._state.agent or "unknown"}
            self._turn = self._open("agent.turn", "invoke_agent", attributes, client=hosted)

    def turn_ends(self, error: BaseException | None) -> None:
        """End the turn's span, as the one of a turn that has ended."""
        span, self._turn = self._turn, None
        if span is None:
            return
        state = self._state
        with self._quietly:
            span.set({"agent.iterations": state.iterations, "agent.stop_reason": state.stop_reason or "unknown"})
            if state.verdict is not None:
                span.set(verdict_attributes(state.verdict))
        with self._quietly:
            span.end(type(error).__name__ if isinstance(error, Exception) else None)

    # Model calls

    def model_begins(self, call: ModelCall, iteration: int) -> OwnSpan | None:
        """Open a model call's span."""
        with self._quietly:
            attributes: _Attributes = {"iteration": iteration}
            if call.model:
                attributes["gen_ai.request.model"] = call.model
            provider = call.provider or provider_by_name(call.model)
            if provider:
                attributes["gen_ai.provider.name"] = provider
            return self._open("llm.chat", "chat", attributes, client=True)
        return None

    def model_ends(self, span: OwnSpan | None, call: ModelCall, verdict: Verdict | None) -> None:
        """End a model call's span, and say on the turn's what it brought to light."""
        with self._quietly:
            if span is not None and call.usage is not None:
                span.set(usage_attributes(call.usage))
            self._announce(verdict)
        with self._quietly:
            if span is not None:
                span.end(call.error_type)

    # Tool calls

    def tool_begins(self, call: ToolCall) -> OwnSpan | None:
        """Open a tool call's span."""
        with self._quietly:
            attributes: _Attributes = {
                "tool.name": call.tool,
                "gen_ai.tool.name": call.tool,
                "tool.input_hash": call.input_hash or "",
                "iteration": self._state.iterations,
            }
            if call.call_id is not None:
                attributes["gen_ai.tool.call.id"] = call.call_id
            return self._open("tool.execute", "execute_tool", attributes)
        return None

    def tool_ends(self, span: OwnSpan | None, call: ToolCall, verdict: Verdict | None) -> None:
        """End a tool call's span, and say on the turn's what it brought to light."""
        with self._quietly:
            if span is not None:
                started, ended = call.started or 0.0, call.ended or 0.0
                size = call.result.size if call.result is not None else 0
                span.set({"latency_ms": round((ended - started) * 1000, 3), "tool.result_size": size})
            self._announce(verdict)
        with self._quietly:
            if span is not None:
                span.end(call.error_type)

    # Shared by the above

    def _open(self, name: str, operation: str, attributes: _Attributes, *, client: bool = False) -> OwnSpan | None:
        if not self._state.watch.settings.spans:
            return None
        # On the calls too: the turn's span is sent when the turn has ended, and whoever stops it cannot wait for that.
        conversation_id = self._state.conversation_id
        if conversation_id is not None:
            attributes["gen_ai.conversation.id"] = conversation_id
        return open_span(name, operation, attributes, client=client, parent=self._turn)

    def _announce(self, verdict: Verdict | None) -> None:
        if verdict is not None and self._turn is not None:
            self._turn.set(verdict_attributes(verdict))
            self._turn.event(
                "loop.detected",
                {**verdict_attributes(verdict), "loop.severity": verdict.severity, "loop.clears": verdict.clears},
            )

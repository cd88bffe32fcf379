"""What an agent's own code says about a call while it runs and when it is over."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType

from turnwatch.core.events import ModelCall, Outcome, ToolCall, Usage
from turnwatch.core.evidence import Evidence, evidence_of
from turnwatch.core.names import name_of
from turnwatch.core.reply_text import reply_text
from turnwatch.core.usage import read_model, read_usage, token_count
from turnwatch.core.watch import Watch


class ModelCallInProgress:
    """One model call of a turn: tell it the usage."""

    def __init__(self, call: ModelCall, watch: Watch) -> None:
        self._call = call
        self._watch = watch

    def usage(
        self,
        reply: object = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int = 0,
        cache_write_tokens: int = 0,
        reasoning_tokens: int = 0,
        spend_usd: float | None = None,
    ) -> None:
        """Say what the call used. A reply of mere text, given again and again, is judged as a monologue.

        Args:
            reply: The provider's reply or its usage part: OpenAI, Anthropic and Gemini objects and dicts.
            input_tokens: All input tokens, cached ones included.
            output_tokens: All output tokens, reasoning included.
            cache_read_tokens: The part of the input read from the provider's cache.
            cache_write_tokens: The part of the input written to it.
            reasoning_tokens: The reasoning part of the output.
            spend_usd: Dollars, when you know better than the price list.
        """
        try:
            call = self._call
            said = [
                token_count(number)
                for number in (input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
            ]
            if said[:2] != [None, None]:
                call.usage = Usage(*(number or 0 for number in said))
            elif reply is not None:
                call.usage = read_usage(reply) or call.usage
                call.model = call.model or read_model(reply) or ""
                text = reply_text(reply)
                if text is not None:
                    call.text = Evidence.of(text)
            if spend_usd is not None:
                call.spend_usd = float(spend_usd)
        except Exception:
            self._watch.internal_error("usage")


def refuse_coroutine(tool: object, result: object, instead: str) -> None:
    """Refuse to take a coroutine for a tool's result: it has not run, and whether it will work is not known.

    Raises:
        TypeError: It is one. It never runs.
    """
    if type(result) is CoroutineType:
        result.close()
        raise TypeError(f"{name_of(tool)} gives a coroutine: use {instead}")


class ToolCallInProgress:
    """One tool call of a turn: tell it what came of it. What is told first counts.

    Attributes:
        call: The call as it is judged. What is known of the tool (``read_only``, ``polling``, ``mutates``) may be set.
    """

    __slots__ = ("_end", "_watch", "call")

    def __init__(self, call: ToolCall, end: Callable[[ToolCall, object], None], watch: Watch) -> None:
        self.call = call
        self._end: Callable[[ToolCall, object], None] | None = end
        self._watch = watch

    def returned(self, result: object, *, outcome: Outcome = "ok") -> None:
        """The tool returned; "cached" when it did not have to run, "denied" when it was kept from running.

        Raises:
            TurnStopped: The turn is stuck and its guard stops it here.
        """
        end = self._take_end()
        if end is None:
            return
        try:
            self.call.outcome = outcome
            self.call.result = evidence_of(result)
        except Exception:
            self._watch.internal_error("a tool's result")
        end(self.call, result)

    def failed(self, error: BaseException) -> None:
        """The tool raised. Raises nothing: the tool's own exception goes first."""
        self._failed("error", type(error).__name__, error)

    def failed_saying(self, message: object) -> None:
        """The tool failed, and there is no exception but what the model is told of it. Raises nothing."""
        self._failed("error", "tool_error", message)

    def unanswered(self) -> None:
        """Nobody will say what came of it: it counts as having worked, its result and how long it took as unknown.

        Raises:
            TurnStopped: The turn is stuck and its guard stops it here.
        """
        end = self._take_end()
        if end is not None:
            self.call.started = None
            end(self.call, None)

    def refused(self, error: Exception) -> None:
        """The tool was kept from running, and this is raised for it. Raises nothing itself."""
        self._failed("denied", type(error).__name__, error)

    def _failed(self, outcome: Outcome, kind: str, said: object) -> None:
        end, call = self._take_end(), self.call
        if end is None:
            return
        try:
            call.outcome, call.error_type = outcome, kind
            call.result = Evidence.of(f"{kind}: {said}" if isinstance(said, BaseException) else said)
        except Exception:
            self._watch.internal_error("a tool's error")
        end(call, None)

    def _take_end(self) -> Callable[[ToolCall, object], None] | None:
        end, self._end = self._end, None
        return end

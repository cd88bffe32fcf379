"""One model call of a turn by hand, as a block."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import final

from turnwatch.core.current_call import running
from turnwatch.core.events import ModelCall, Usage
from turnwatch.core.turn import TurnState
from turnwatch.sources.calls_in_progress import ModelCallInProgress
from turnwatch.sources.own_spans import OwnSpan
from turnwatch.sources.turn_spans import TurnSpans


@final
class ModelCallBlock:
    """A context manager for ``with`` and ``async with``; see ``Turn.model_call``."""

    __slots__ = ("_call", "_model", "_provider", "_reserve", "_running", "_span", "_spans", "_state")

    _call: ModelCall
    _running: AbstractContextManager[None]
    _span: OwnSpan | None

    def __init__(
        self, state: TurnState, spans: TurnSpans, model: str, provider: str, reserve: Usage | float | None
    ) -> None:
        self._state = state
        self._spans = spans
        self._model = model
        self._provider = provider
        self._reserve = reserve

    def __enter__(self) -> ModelCallInProgress:
        state = self._state
        self._call = call = ModelCall(self._model, provider=self._provider, started=state.watch.clock())
        if state.guard is not None:
            state.guard.before_model(call, self._reserve)
        self._span = self._spans.model_begins(call, state.begin_model(call.started))
        self._running = running(call)
        self._running.__enter__()
        return ModelCallInProgress(call, state.watch)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state, call = self._state, self._call
        self._running.__exit__(None, None, None)
        if error is not None:
            call.outcome, call.error_type = "error", type(error).__name__
        verdict = state.end_model(call)
        self._spans.model_ends(self._span, call, verdict)
        if state.guard is not None:
            state.guard.after_model(call, verdict)

    async def __aenter__(self) -> ModelCallInProgress:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

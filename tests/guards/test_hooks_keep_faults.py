"""Hooks that frameworks call: a fault inside is counted, and only a stop comes out."""

from __future__ import annotations

import inspect

import pytest

import turnwatch as tw
from turnwatch.core.watch import Watch
from turnwatch.guards.frameworks.quiet_hook import quiet_hook
from turnwatch.guards.frameworks.reported import TurnOpener


class Hooks:
    """Two hooks that do as they are told."""

    def __init__(self, watch: Watch) -> None:
        self._opener = TurnOpener("a", None, watch, {})

    @quiet_hook
    def told(self, event: object) -> object:
        return _as_told(event)

    @quiet_hook
    async def told_later(self, event: object) -> object:
        return _as_told(event)


def _as_told(event: object) -> object:
    if isinstance(event, BaseException):
        raise event
    return event


@pytest.mark.parametrize("hook", ["told", "told_later"])
async def test_a_fault_is_counted_and_only_a_stop_comes_out(watch, hook):
    async def call(event: object) -> object:
        answer = getattr(Hooks(watch), hook)(event)
        return await answer if inspect.isawaitable(answer) else answer

    assert await call("fine") == "fine"
    assert watch.faults == 0
    assert await call(KeyError("a field that a new release does not have")) is None
    assert watch.value("turnwatch_internal_errors_total") == 1
    with pytest.raises(tw.BudgetExceeded):
        await call(tw.BudgetExceeded("spent"))
    with pytest.raises(KeyboardInterrupt):
        await call(KeyboardInterrupt())
    assert watch.faults == 1


def test_a_hook_still_looks_like_itself():
    # Frameworks look at the parameters, and at whether to await.
    assert list(inspect.signature(Hooks.told).parameters) == ["self", "event"]
    assert inspect.iscoroutinefunction(Hooks.told_later)

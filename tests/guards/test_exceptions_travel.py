"""A stop arrives in another process, and copies are as good as the original."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import turnwatch as tw

EXCEPTIONS = [
    tw.LoopDetected("stuck", partial=["a"], details={"tool": "search"}),
    tw.BudgetExceeded("spent", stop_reason="max_turn_tokens"),
    tw.TurnStopped("failed inside", stop_reason="error"),
    tw.SideEffectHeld("held"),
    tw.UnknownToolError("unknown"),
    tw.SettingsError("key"),
    tw.MissingExtraError("a page", "page"),
]


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_every_exception_can_be_sent_and_copied(error, again):
    made = again(error)
    assert type(made) is type(error)
    assert str(made) == str(error)
    assert vars(made) == vars(error)


def test_a_result_that_cannot_be_sent_keeps_no_stop_from_arriving(watch):
    lock = threading.Lock()
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tool_calls=2)) as turn:
        turn.call_tool("lock", lambda: lock)
        turn.call_tool("lookup", lambda: "row")
        with pytest.raises(tw.TurnStopped) as stopped:
            turn.call_tool("lookup", lambda: "row")
    arrived = pickle.loads(pickle.dumps(stopped.value))
    assert arrived.stop_reason == "max_tool_calls"
    assert (arrived.partial.results, arrived.partial.tool_calls) == ((("lookup", "row"),), 3)
    assert copy.deepcopy(stopped.value).partial.results == (("lock", lock), ("lookup", "row"))

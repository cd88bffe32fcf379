"""One piece of agent behaviour that touches every metric a turn can, for comparing views."""

from __future__ import annotations

from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.watch import Watch


def behave(watch: Watch) -> None:
    """A looping turn with a healthy child, then a failing turn."""
    turn = watch.open_turn("bot", conversation_id="c-1")
    for number in range(10):
        turn.begin_model(at=watch.clock())
        turn.end_model(
            ModelCall(
                "claude-sonnet-4-5" if number else "no-such-model-1",
                usage=Usage(1_000, 100, 200, 10, 30) if number < 9 else None,
                started=watch.clock() - 0.5,
                ended=watch.clock(),
            )
        )
        call = ToolCall("search_orders", {"customer_id": "C-7841"}, started=watch.clock() - 0.2)
        turn.begin_call(call)
        call.ended = watch.clock()
        call.result = Evidence.of("[]")
        turn.end_call(call)
    child = watch.open_turn("helper", parent=turn)
    child.record("read_file", None)
    child.end()
    turn.end("max_iterations")
    failed = watch.open_turn("bot")
    failed.begin_model()
    failed.end_model(ModelCall("gpt-4o", outcome="error"))
    failed.end("error")
    watch.open_turn("bot").record("search_orders", "00000000000000aa")

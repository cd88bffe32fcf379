"""One ToolCall that is filled anew for every call, as a loop of the caller's own may do."""

import pytest

from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.watch import Watch


@pytest.mark.parametrize("conversation", [None, "c"])
def test_a_call_is_judged_by_the_arguments_that_it_has_now(conversation):
    turn = Watch().open_turn("reader", conversation_id=conversation)
    call = ToolCall("read_page")
    for page in range(12):
        call.args, call.input_hash, call.result = {"page": page}, None, Evidence.of(f"what stands on page {page}")
        turn.begin_call(call)
        turn.end_call(call)
    assert (turn.tool_calls, turn.repeats, turn.verdict) == (12, 0, None)

"""Turns out of spans that come late, early, twice, in part, or not at all."""

import logging
from collections import Counter

import pytest
from tests.sources.spans.story import Story

from turnwatch.metrics.store import Store
from turnwatch.sources.spans.span import SERVER, SpanEvent


@pytest.fixture
def story():
    return Story()


def test_calls_under_an_agent_are_its_turn(story):
    story.feed(story.chat(9, at=0), story.tool(9, at=1), story.chat(9, at=2), story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (2, 1, "final_answer")
    assert turn.usage.input == 20


def test_a_turn_ends_when_the_grace_after_its_agent_is_over():
    story = Story(grace_seconds=10)
    story.feed(story.tool(9), story.agent(9))
    story.pass_time(9)
    story.feed(story.tool(9, at=3))
    assert not story.ended
    story.pass_time(5)
    assert [turn.tool_calls for turn in story.ended] == [2]


def test_a_turn_without_an_agent_is_its_trace(story):
    story.feed(story.chat(9), story.tool(9, at=1), story.span("POST /ask", {}, span_id=9, scope="fastapi"))
    (turn,) = story.all_turns().values()
    assert (turn.iterations, turn.tool_calls, turn.stop_reason) == (1, 1, "final_answer")


def test_steps_belong_to_the_agent_above_them(story):
    for number in range(3):
        step = 100 + number
        story.feed(
            story.chat(step, at=number),
            story.tool(step, at=number + 0.5),
            story.step(step, 9),
        )
    story.feed(story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls, turn.repeats) == (3, 3, 2)
    assert len(story.ended) == 1


def test_wrappers_of_one_agent_are_one_turn(story):
    story.feed(story.tool(9), story.agent(9, 8), story.agent(8, 7), story.agent(7, name=""))
    turns = story.all_turns()
    assert len(story.ended) == 1
    assert turns["bot"].tool_calls == 1


def test_a_nameless_agent_inside_another_is_part_of_it(story):
    story.feed(story.tool(9), story.agent(9, 8, name=""), story.tool(8, at=2), story.agent(8))
    assert story.all_turns()["bot"].repeats == 1
    assert len(story.ended) == 1


def test_a_sub_agent_under_a_tool_has_its_own_turn(story):
    for number, (tool_span, inner) in enumerate(((21, 31), (22, 32))):
        story.feed(
            story.chat(9, at=number * 10),
            story.chat(inner, at=number * 10 + 1),
            story.tool(inner, at=number * 10 + 2),
            story.agent(inner, tool_span, name="helper", at=number * 10 + 1, seconds=3),
            story.tool(9, name="ask_helper", span_id=tool_span, at=number * 10 + 1, seconds=4),
        )
    story.feed(story.agent(9))
    story.assembler.flush()
    counts = Counter((turn.agent, turn.tool_calls, turn.repeats) for turn in story.ended)
    assert counts == {("helper", 1, 0): 2, ("bot", 2, 1): 1}


def test_tool_calls_inside_a_tool_are_a_turn_of_their_own_even_without_an_agent_span(story):
    story.feed(story.tool(21), story.tool(9, name="delegate", span_id=21, at=1, args="{}"), story.agent(9))
    turns = story.all_turns()
    assert turns["delegate"].tool_calls == 1
    assert turns["bot"].tool_calls == 1


def test_a_model_call_inside_a_tool_belongs_to_the_agent(story):
    story.feed(story.chat(21), story.tool(9, span_id=21, at=1), story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls) == (1, 1)
    assert len(story.ended) == 1


def test_two_turns_of_one_conversation_are_two(story):
    for trace in (1, 2):
        story.feed(
            story.tool(trace * 10, trace=trace),
            story.agent(trace * 10, trace=trace, attributes={"gen_ai.conversation.id": "c-1"}),
        )
    story.assembler.flush()
    assert [(turn.conversation_id, turn.tool_calls, turn.repeats) for turn in story.ended] == [("c-1", 1, 0)] * 2


def test_a_stuck_turn_is_judged_while_its_agent_still_runs(story):
    for number in range(6):
        story.feed(
            story.chat(9, at=number),
            story.tool(9, at=number + 0.5, attributes={"gen_ai.tool.call.result": "nothing"}),
            after=5,
        )
    assert not story.ended
    assert story.assembler.open_turns == 1
    (turn,) = [ref() for ref in story.watch._open.values()]
    assert turn.tool_calls == 6
    assert turn.verdict.severity == "stuck"


def tool_calls_of(meter):
    """Tool calls by agent and tool."""
    cells = meter.counters.get("agent_tool_calls_total", {})
    return {(agent, tool): cell.value for (agent, tool, _), cell in cells.items() if cell.value}


@pytest.fixture
def named_late():
    """A story whose calls wait for their agent's name, and the counters it counts into."""
    story = Story(name_seconds=10)
    counts = story.watch.meter = Store()
    return story, counts


def test_an_agent_named_in_a_later_batch_counts_under_its_name(named_late):
    story, meter = named_late
    story.feed(story.chat(9), story.tool(9, at=1), story.chat(9, at=2))
    story.feed(story.tool(9, at=3), after=5)
    assert story.assembler.open_turns == 0
    story.feed(story.agent(9), after=3)
    assert {agent for agent, _ in tool_calls_of(meter)} == {"bot"}
    (turn,) = story.all_turns().values()
    assert (turn.iterations, turn.tool_calls) == (2, 2)


def test_calls_that_nothing_names_wait_for_their_agent_only_so_long(named_late):
    story, meter = named_late
    story.feed(*(story.chat(9, at=number) for number in range(4)), *(story.tool(9, at=number) for number in range(4)))
    story.pass_time(11)
    assert story.assembler.open_turns == 1
    assert tool_calls_of(meter) == {("unknown", "search"): 4}


def test_calls_that_name_their_agent_do_not_wait(named_late):
    story, meter = named_late
    name = {"gen_ai.agent.name": "bot"}
    story.feed(*(story.chat(9, at=number, attributes=name) for number in range(2)), story.tool(9, at=3))
    assert tool_calls_of(meter) == {("bot", "search"): 1}


@pytest.mark.parametrize("is_one_batch", [True, False])
def test_what_a_sub_agent_spends_counts_towards_the_agent_above_it(story, is_one_batch):
    inner = [story.chat(20, at=2, tokens=100), story.tool(20, at=3), story.agent(20, 9, name="inner")]
    outer = [story.chat(9, at=8, tokens=7), story.agent(9)]
    for batch in [inner + outer] if is_one_batch else [[span] for span in inner + outer]:
        story.feed(*batch)
    turns = story.all_turns()
    assert turns["inner"].parent is turns["bot"]
    assert (turns["inner"].total_tokens, turns["bot"].usage.total, turns["bot"].total_tokens) == (101, 8, 109)
    assert turns["bot"].total_spend_usd == pytest.approx(turns["bot"].spend_usd + turns["inner"].spend_usd)


def test_what_a_sub_agent_spends_after_its_parent_is_known_counts_there_as_well(story):
    story.feed(story.chat(20, at=2), story.chat(20, at=3), story.tool(20, at=4))
    story.feed(story.chat(9, at=8, tokens=7), story.agent(20, 9, name="inner"), story.agent(9))
    story.feed(story.chat(20, at=5, tokens=1000))
    turns = story.all_turns()
    assert turns["bot"].total_tokens == 8 + turns["inner"].usage.total == 8 + 2 * 11 + 1001


def test_a_conversation_that_shows_late_gets_what_was_counted_before(story):
    story.feed(*(story.chat(9, at=number, tokens=10) for number in range(3)))
    story.feed(story.agent(9, attributes={"gen_ai.conversation.id": "c-1"}))
    story.feed(story.chat(9, at=8, tokens=10))
    story.assembler.flush()
    (turn,) = story.ended
    assert turn.conversation_id == "c-1"
    conversation = story.watch.conversations.get("c-1")
    assert (conversation.turns, conversation.model_calls, conversation.tokens) == (1, 4, 44)
    assert conversation.spend_usd == pytest.approx(turn.spend_usd)


def test_steps_that_take_long_do_not_split_a_turn():
    story = Story(settle_seconds=30)
    for number in range(3):
        step = 100 + number
        story.feed(story.chat(step, at=number * 90), after=1)
        story.pass_time(40)  # the tool of this step runs for longer than calls wait
        story.feed(story.tool(step, at=number * 90 + 50), story.step(step, 9), after=1)
    story.feed(story.agent(9))
    assert [(turn.iterations, turn.tool_calls) for turn in story.all_turns().values()] == [(3, 3)]
    assert len(story.ended) == 1


def test_calls_whose_parents_never_come_count_towards_their_trace():
    story = Story(settle_seconds=30, idle_seconds=600)
    story.feed(story.tool(501), story.tool(502, at=1), story.tool(503, at=2))
    story.pass_time(31)
    assert story.assembler.open_turns == 1
    story.pass_time(601)
    assert [(turn.tool_calls, turn.repeats, turn.stop_reason) for turn in story.ended] == [(3, 2, "unknown")]


def test_a_root_that_comes_first_waits_for_its_children(story):
    story.feed(story.span("chain", {"gen_ai.operation.name": "chain"}, span_id=9, seconds=60))
    story.feed(story.chat(9), story.tool(9, at=1), story.chat(9, at=2))
    assert [(turn.iterations, turn.tool_calls) for turn in story.all_turns().values()] == [(2, 1)]


def test_an_agent_that_calls_nothing_is_a_turn(story):
    story.feed(story.agent(9, attributes={"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2}))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input) == (0, 7)


def test_the_sum_on_an_agent_counts_only_where_its_model_calls_count_nothing(story):
    total = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 3}
    story.feed(story.chat(9, tokens=10), story.chat(9, at=1, tokens=20), story.agent(9, attributes=total))
    assert story.all_turns()["bot"].usage.input == 30


# One call seen by several


def test_a_model_call_seen_by_two_instrumentations_counts_once(story):
    inner = story.chat(21, reply_id="r1", at=0.1, seconds=0.3, scope="sdk")
    outer = story.chat(9, reply_id="r1", span_id=21, scope="framework")
    sibling = story.chat(9, reply_id="r1", at=0.1, seconds=0.2, scope="third")
    story.feed(inner, outer, sibling, story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input) == (1, 10)


def test_siblings_without_an_id_are_one_call_when_one_lies_within_the_other(story):
    story.feed(
        story.chat(9, at=0.1, seconds=0.3, scope="sdk"),
        story.chat(9, at=0, seconds=0.5, scope="other"),
        story.chat(9, at=2, scope="sdk"),
        story.agent(9),
    )
    assert story.all_turns()["bot"].iterations == 2


def test_a_reply_of_deeply_nested_arguments_fails_no_turn(story):
    """It is read when its turn ends, and other turns end after it."""
    deep = "[" * 500 + "]" * 500
    part = '{"type": "tool_call", "id": "1", "name": "search", "arguments": ' + deep + "}"
    reply = {"gen_ai.output.messages": '[{"role": "assistant", "parts": [' + part + "]}]"}
    story.feed(story.chat(9, attributes=reply), story.agent(9))
    story.feed(story.chat(8, trace=8), story.agent(8, trace=8, name="other"))
    assert {name: turn.iterations for name, turn in story.all_turns().items()} == {"bot": 1, "other": 1}


@pytest.mark.parametrize(
    "number",
    ["9" * 400, "9" * 5_000, 2**64, float("nan"), float("inf"), 1e300, -1],
    ids=["larger than floats", "more digits than are read", "larger than in OTLP", "nan", "inf", "1e300", "negative"],
)
def test_what_can_be_no_number_of_tokens_is_none(story, number):
    printed = f"usage=CompletionUsage(cached_tokens={number}"
    crew = {"crewai.crew.token_usage": f"prompt_tokens={number}"}
    story.feed(
        story.chat(9, tokens=number, attributes={"output.value": printed}),
        story.chat(9, at=1, tokens=7, attributes={"output.value": printed}),
        story.agent(9, attributes=crew),
    )
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input, turn.usage.output) == (2, 7, 2)


def test_usage_of_either_span_of_a_call_is_used(story):
    bare = {"gen_ai.operation.name": "chat", "gen_ai.response.id": "r1"}
    story.feed(
        story.span("outer", bare, 9, at=0, seconds=1, scope="one"),
        story.chat(9, reply_id="r1", at=0.2, seconds=0.5, scope="two"),
        story.agent(9),
    )
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input) == (1, 10)


def test_a_tool_span_inside_another_instrumentations_span_of_the_same_call_counts_once(story):
    inner = story.tool(21, args=None, call_id="call_1", scope="autogen-core", name="search")
    outer = story.span(
        "bot.search",
        {"openinference.span.kind": "TOOL", "tool.name": "bot.search", "input.value": '{"q": 1}'},
        9,
        span_id=21,
        scope="openinference.instrumentation.autogen",
    )
    story.feed(inner, outer, story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.missing_arguments) == (1, 0)


def test_one_call_id_from_two_instrumentations_counts_once(story):
    story.feed(
        story.tool(9, call_id="call_1", scope="one"),
        story.tool(9, call_id="call_1", at=0.1, scope="two"),
        story.agent(9),
    )
    assert story.all_turns()["bot"].tool_calls == 1


def test_partial_spans_of_a_call_that_still_runs_count_once(story):
    story.feed(*(story.tool(9, call_id="call_1", seconds=seconds) for seconds in (1, 2, 3)), story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.repeats) == (1, 0)


def test_an_id_that_a_provider_uses_again_is_another_call(story):
    story.feed(story.tool(9, call_id="call_0"), story.tool(9, call_id="call_0", at=5), story.agent(9))
    assert story.all_turns()["bot"].tool_calls == 2


def mcp(story, parent, name="search", *, span_id=None, kind=SERVER, **more):
    attributes = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    more = more if span_id is None else {"span_id": span_id, **more}
    return story.span(f"tools/call {name}", attributes, parent, kind=kind, scope="mcp-python-sdk", **more)


def test_mcp_spans_do_not_count_beside_tool_spans(story):
    story.feed(mcp(story, 41), mcp(story, 21, span_id=41, kind=3), story.tool(9, span_id=21), story.agent(9))
    assert story.all_turns()["bot"].tool_calls == 1


def test_mcp_spans_count_where_nothing_else_tells_of_the_call(story):
    story.feed(mcp(story, 41), mcp(story, 9, span_id=41, kind=3), mcp(story, 9, at=2, kind=3), story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.missing_arguments) == (2, 2)


def test_an_mcp_server_in_a_trace_of_its_own_is_nobodys_turn(story):
    story.feed(mcp(story, 0))
    assert story.all_turns() == {}


def test_mcp_spans_of_a_turn_that_runs_on_are_counted_after_a_while():
    story = Story(settle_seconds=30)
    story.feed(story.chat(9), mcp(story, 9, kind=3, at=1), story.chat(9, at=2), mcp(story, 9, kind=3, at=3))
    story.pass_time(31)
    (turn,) = [ref() for ref in story.watch._open.values()]
    assert turn.tool_calls == 2


def test_spans_that_turnwatch_counted_itself_are_not_counted_again(story):
    counted = {"turnwatch.counted": True}
    story.feed(
        story.chat(21, scope="openai", at=0.1, seconds=0.1),
        story.chat(9, span_id=21, attributes=counted, scope="turnwatch"),
        story.tool(9, at=1, attributes=counted, scope="turnwatch"),
        story.agent(9, attributes=counted),
    )
    assert not [turn for turn in story.all_turns().values() if turn.iterations or turn.tool_calls]


def test_a_span_that_is_still_open_is_not_counted(story):
    unfinished = story.tool(9)
    unfinished.end_ns = 0
    pending = story.tool(9, attributes={"logfire.span_type": "pending_span"})
    story.feed(unfinished, pending, story.tool(9, at=1), story.agent(9))
    assert story.all_turns()["bot"].tool_calls == 1


# Calls that stand in replies only


def reply(*calls):
    parts = [{"type": "tool_call", "id": call_id, "name": tool, "arguments": args} for call_id, tool, args in calls]
    return {"gen_ai.output.messages": [{"role": "assistant", "parts": parts or [{"type": "text", "content": "Done."}]}]}


def told(call_id, result):
    part = {"type": "tool_call_response", "id": call_id, "response": result}
    return {"gen_ai.input.messages": [{"role": "tool", "parts": [part]}]}


def test_tool_calls_of_a_raw_client_are_read_from_its_replies(story):
    story.feed(
        story.chat(9, at=0, attributes=reply(("c1", "search", {"q": 1}))),
        story.chat(9, at=2, attributes={**told("c1", "nothing"), **reply(("c2", "search", {"q": 1}))}),
        story.chat(9, at=4, attributes={**told("c2", "nothing"), **reply()}),
        story.span("loop", {}, span_id=9, seconds=9, scope="my.app"),
    )
    (turn,) = story.all_turns().values()
    assert (turn.iterations, turn.tool_calls, turn.repeats) == (3, 2, 1)
    assert turn.engine.mode == "full"


def test_replies_are_not_read_where_tools_have_spans(story):
    story.feed(
        story.chat(9, at=0, attributes=reply(("c1", "search", {"q": 1}))),
        story.tool(9, at=1, call_id="c1"),
        story.chat(9, at=2, attributes=reply()),
        story.agent(9),
    )
    assert story.all_turns()["bot"].tool_calls == 1


def test_arguments_that_a_span_lacks_are_taken_from_the_reply(story):
    story.feed(
        story.chat(9, at=0, attributes=reply(("c1", "search", {"q": 1}))),
        story.tool(9, at=1, call_id="c1", args=None),
        story.chat(9, at=2, attributes=reply(("c2", "search", {"q": 1}))),
        story.tool(9, at=3, call_id="c2", args=None),
        story.agent(9),
    )
    turn = story.all_turns()["bot"]
    assert (turn.tool_calls, turn.repeats, turn.missing_arguments) == (2, 1, 0)


def test_a_request_that_groups_its_spans_by_instrumentation_is_read_in_the_order_in_which_they_ended(story):
    client, sdk = "opentelemetry.instrumentation.genai.anthropic", "com.anthropic.sdk.python"
    story.feed(story.chat(9, at=-9, attributes=reply()), story.chat(9, at=-6, attributes=reply()))
    story.feed(
        story.chat(11, at=0.1, seconds=0.5, scope=sdk, reply_id="r1"),
        story.tool(9, at=1, call_id="c1", args=None, scope=sdk),
        story.chat(12, at=2.1, seconds=0.5, scope=sdk, reply_id="r2"),
        story.tool(9, at=3, call_id="c2", args=None, scope=sdk),
        story.chat(9, at=0, seconds=0.8, span_id=11, reply_id="r1", scope=client,
                   attributes=reply(("c1", "search", {"q": 1}))),
        story.chat(9, at=2, seconds=0.8, span_id=12, reply_id="r2", scope=client,
                   attributes=reply(("c2", "search", {"q": 1}))),
    )  # fmt: skip
    story.feed(story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls, turn.repeats, turn.missing_arguments) == (4, 2, 1, 0)


def test_a_reply_that_only_a_late_second_span_carries_gives_its_arguments(story):
    story.feed(story.chat(9, reply_id="r1", attributes=reply()), story.chat(9, at=1, reply_id="r2"))
    story.pass_time(5)
    late = reply(("c1", "search", {"q": 1}))
    story.feed(story.chat(9, at=1, seconds=0.6, reply_id="r2", scope="another", attributes=late))
    story.feed(story.tool(9, at=3, call_id="c1", args=None), story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.tool_calls, turn.missing_arguments) == (2, 1, 0)


def test_model_calls_in_traces_of_their_own_are_tied_by_their_messages(story):
    story.feed(story.chat(trace=1, at=0, attributes=reply(("c1", "search", {"q": 1}))))
    story.feed(story.chat(trace=2, at=2, attributes={**told("c1", "x"), **reply(("c2", "search", {"q": 1}))}))
    story.feed(story.chat(trace=3, at=4, attributes={**told("c2", "x"), **reply()}))
    story.feed(story.chat(trace=4, at=60, attributes=reply(("c9", "search", {"q": 1}))))
    story.assembler.flush()
    assert [(turn.iterations, turn.tool_calls, turn.repeats) for turn in story.ended] == [(3, 2, 1), (1, 1, 0)]


SDK, BESIDE = "com.anthropic.sdk.python", "opentelemetry.instrumentation.anthropic"


def test_model_calls_in_traces_of_their_own_count_once_where_a_second_span_without_messages_comes_first(story):
    asks = reply(("c1", "search", {"q": 1}))
    story.feed(story.chat(trace=1, at=0, reply_id="r1", scope=SDK))
    story.feed(story.chat(trace=2, at=0, seconds=0.6, reply_id="r1", scope=BESIDE, attributes=asks), after=5)
    story.feed(story.chat(trace=3, at=2, reply_id="r2", scope=SDK))
    ends = {**told("c1", "x"), **reply()}
    story.feed(story.chat(trace=4, at=2, seconds=0.6, reply_id="r2", scope=BESIDE, attributes=ends))
    story.assembler.flush()
    (turn,) = story.ended
    assert (turn.iterations, turn.tool_calls, turn.usage.input, turn.stop_reason) == (2, 1, 20, "final_answer")


def test_a_model_call_of_which_nobody_else_tells_is_a_turn_after_a_while(story):
    story.feed(story.chat(reply_id="r1", scope=SDK))
    story.pass_time(31)
    story.feed(story.chat(trace=2, at=0, seconds=0.6, reply_id="r1", scope=BESIDE, attributes=reply()))
    story.feed(story.chat(trace=3, at=90, reply_id="r2", scope=SDK))
    story.assembler.flush()
    assert (story.ended[0].iterations, story.ended[0].stop_reason) == (1, "final_answer")
    assert sum(turn.iterations for turn in story.ended) == 2, "what is told of again after all counts no more"


def test_a_model_span_inside_another_of_the_same_call_leaves_no_turn_behind(story):
    story.feed(story.chat(11, reply_id="r1", scope=SDK))
    story.feed(story.chat(span_id=11, seconds=0.6, reply_id="r1", scope=BESIDE, attributes=reply()))
    story.feed(story.chat(12, trace=2, at=9, reply_id="r2", scope=SDK))
    story.feed(story.chat(span_id=12, trace=2, at=9, seconds=0.6, reply_id="r2", scope=BESIDE, attributes=reply()))
    story.assembler.flush()
    assert [turn.iterations for turn in story.ended] == [1, 1]


@pytest.mark.parametrize("sdk_first", [True, False])
def test_the_tokens_that_the_library_counted_itself_hold(story, sdk_first):
    spans = [
        story.chat(9, at=0, reply_id="r1", scope=SDK, tokens=10),
        story.chat(9, at=0, seconds=0.6, reply_id="r1", scope=BESIDE, tokens=17),
    ]
    for span in spans if sdk_first else reversed(spans):
        story.feed(span)
    story.feed(story.agent(9))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input) == (1, 10)


def test_a_graph_whose_nodes_are_agents_is_called_after_itself(story):
    node, graph = "openlit.instrumentation.langgraph", {"gen_ai.operation.name": "invoke_workflow"}
    graph |= {"gen_ai.workflow.name": "support", "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 7}
    story.feed(story.chat(11), story.agent(11, 9, name="model", scope=node), story.tool(9, at=1))
    story.feed(story.span("invoke_workflow support stream", graph, span_id=9, seconds=9, scope=node))
    turn = story.all_turns()["support"]
    assert (turn.iterations, turn.tool_calls, turn.usage.input) == (1, 1, 10)


def test_each_instrumentation_without_arguments_is_named_once_and_a_bounded_number_of_them(story, caplog):
    with caplog.at_level(logging.WARNING, "turnwatch"):
        for number in range(200):
            for place, scope in enumerate(("strands.telemetry.tracer", "strands-agents", f"lib.{number}"), 1):
                story.feed(story.tool(args=None, trace=3 * number + place, scope=scope), after=60)
        story.all_turns()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 64
    for scope in ("strands.telemetry.tracer", "strands-agents"):
        assert sum(f"Spans of strands ({scope}) come without tool arguments" in text for text in said) == 1


def test_a_reply_that_asks_for_tools_without_saying_which_is_reported(story, caplog):
    asks = {"gen_ai.response.finish_reasons": ["tool_calls"]}
    with caplog.at_level(logging.WARNING, "turnwatch"):
        story.feed(
            story.chat(9, at=0, attributes=asks, scope="opentelemetry.instrumentation.openai_v2"),
            story.chat(9, at=1, attributes=asks, scope="opentelemetry.instrumentation.openai_v2"),
            story.span("loop", {}, span_id=9, seconds=9, scope="my.app"),
        )
        (turn,) = story.all_turns().values()
    assert (turn.tool_calls, turn.missing_arguments) == (0, 2)
    assert len(caplog.records) == 1
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in caplog.text


# Bounds and faults


def test_past_the_bound_the_turn_with_the_oldest_news_is_evicted():
    story = Story(open_turns=3)
    for number in range(1, 6):
        story.feed(story.chat(number * 100, trace=number), story.chat(number * 100, trace=number, at=1))
    assert story.assembler.open_turns == 3
    assert [turn.stop_reason for turn in story.ended] == ["evicted", "evicted"]


def test_what_is_kept_does_not_grow_with_the_length_of_a_turn(story):
    def kept():
        scope = next(iter(story.assembler._turns._open))
        return sum(len(getattr(scope, name) or ()) for name in ("pending", "held", "recent_tools", "recent_models"))

    sizes = []
    for number in range(300):
        story.feed(
            story.chat(9, at=number * 2),
            story.tool(9, at=number * 2 + 1, args=f'{{"q": {number}}}', call_id=f"c{number}"),
        )
        if number in (50, 299):
            sizes.append(kept())
    assert sizes[0] == sizes[1]


def test_unrelated_spans_leave_nothing_behind(story):
    story.feed(*(story.span("GET /", {"http.request.method": "GET"}, 9, scope="requests") for _ in range(100)))
    assert story.assembler.open_turns == 0
    assert not story.assembler._places._waiting


def test_a_span_that_cannot_be_read_is_left_out_and_the_next_is_read():
    story = Story()
    broken = story.tool(9)
    broken.attributes = None
    story.assembler.feed([broken, story.tool(9, at=1), story.agent(9)], 1.0)
    story.assembler.flush()
    assert len(story.faults) == 1
    assert [turn.tool_calls for turn in story.ended] == [1]


@pytest.mark.parametrize(
    ("exception", "reason"),
    [
        ("agents.exceptions.MaxTurnsExceeded", "max_iterations"),
        ("langgraph.errors.GraphRecursionError", "max_iterations"),
        ("asyncio.exceptions.CancelledError", "user_cancelled"),
        ("builtins.RuntimeError", "error"),
    ],
)
def test_the_error_of_an_agent_says_why_its_turn_ended(story, exception, reason):
    event = SpanEvent("exception", {"exception.type": exception})
    story.feed(story.tool(9), story.agent(9, failed=True, events=[event]))
    assert story.all_turns()["bot"].stop_reason == reason


def test_metadata_that_is_written_as_json_names_the_agent_without_quotation_marks(story):
    attributes = {"langfuse.trace.metadata.lc_agent_name": '"bot"', "langfuse.trace.metadata.thread_id": '"c-1"'}
    agent = story.span("run", {"langfuse.observation.type": "agent", **attributes}, span_id=1)
    story.feed(story.chat(1), agent)
    story.assembler.flush()
    (turn,) = story.ended
    assert (turn.agent, turn.conversation_id) == ("bot", "c-1")


def test_every_span_is_reported_once(story):
    counts = story.watch.meter = Store()
    wrapper = story.agent(1, name="")
    story.feed(story.chat(2, at=1), story.tool(2, at=2), story.step(3, 2), story.agent(2, 1), wrapper)
    story.all_turns()
    told = {outcome: cell.value for (outcome,), cell in counts.counters["turnwatch_spans_total"].items()}
    assert told == {"model": 1, "tool": 1, "step": 1, "agent": 2}

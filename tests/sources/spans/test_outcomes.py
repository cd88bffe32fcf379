"""Failures of which only a span inside a tool call tells, in a batch that comes after the call's own span."""

import pytest
from tests.sources.spans.corpus import CountingMeter
from tests.sources.spans.story import Story

from turnwatch.sources.spans import outcomes
from turnwatch.sources.spans.span import CLIENT, SERVER

AGENT, TOOL, SENT = 100, 200, 300
MCP = "mcp-python-sdk"


@pytest.fixture
def story():
    return counting(outcome_seconds=10)


def counting(**options):
    story = Story(**options)
    story.watch.meter = story.meter = CountingMeter()
    return story


def ended(story):
    """How many calls have been counted as ended well, and as failed."""
    return tuple(int(story.meter.total("agent_tool_calls_total", outcome)) for outcome in ("ok", "error"))


def mcp(story, parent, *, kind, failed=False, **more):
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search"}
    if kind == SERVER:
        attributes["gen_ai.operation.name"] = "execute_tool"
    if failed:
        attributes["error.type"] = "tool_error"
    return story.span("tools/call search", attributes, parent, seconds=0.2, kind=kind, scope=MCP, **more)


def client(story, **more):
    return mcp(story, TOOL, span_id=SENT, kind=CLIENT, **more)


def server(story, parent=SENT, **more):
    return mcp(story, parent, kind=SERVER, **more)


def inside(story, **more):
    """Another instrumentation's span of the same call."""
    return story.tool(TOOL, at=0.1, seconds=0.2, scope="another", **more)


def tool(story, **more):
    return story.tool(AGENT, span_id=TOOL, **more)


TIMEOUT = {"attributes": {"error.type": "Timeout"}}


def knowing(story):
    """The story, after a span inside one call of the tool has told of it."""
    story.feed(story.tool(800, span_id=801), story.agent(800, name="earlier"))
    story.feed(story.tool(801, at=0.1, seconds=0.2, scope="another"))
    story.pass_time(10.1)
    assert ended(story) == (1, 0)
    story.meter.counts.clear()
    return story


def test_a_call_that_went_to_an_mcp_server_waits_for_its_span(story):
    story.feed(story.chat(AGENT), client(story), tool(story), story.agent(AGENT))
    story.pass_time(6)
    assert ended(story) == (0, 0)
    story.feed(server(story, failed=True))
    assert ended(story) == (0, 1)
    assert story.all_turns()["bot"].tool_calls == 1
    assert ended(story) == (0, 1)


def test_where_the_servers_span_says_nothing_of_a_failure_the_call_has_gone_well(story):
    story.feed(client(story), tool(story), story.agent(AGENT))
    story.feed(server(story))
    assert ended(story) == (1, 0)


def test_a_call_of_a_tool_of_which_a_span_inside_has_told_waits_for_one(story):
    knowing(story).feed(tool(story), story.agent(AGENT))
    assert ended(story) == (0, 0)
    story.feed(inside(story, **TIMEOUT))
    assert ended(story) == (0, 1)


def test_a_call_of_another_tool_ends_at_once(story):
    knowing(story).feed(story.tool(AGENT, name="add"), story.agent(AGENT))
    assert ended(story) == (1, 0)


def test_a_clients_span_of_the_call_is_not_the_servers(story):
    knowing(story).feed(tool(story), story.agent(AGENT))
    story.feed(client(story))
    assert ended(story) == (0, 0)
    story.feed(server(story, failed=True))
    assert ended(story) == (0, 1)


def test_a_failure_is_heard_through_spans_that_come_before_the_tools_own(story):
    story.feed(client(story))
    story.feed(server(story, failed=True))
    story.feed(tool(story), story.agent(AGENT))
    assert ended(story) == (0, 1)


def test_a_failure_is_heard_while_the_call_waits_for_its_agent(story):
    story.feed(tool(story))
    story.feed(inside(story, **TIMEOUT))
    story.feed(story.agent(AGENT))
    assert ended(story) == (0, 1)


def test_a_failure_that_a_step_inside_the_call_tells_of_is_the_calls(story):
    knowing(story).feed(tool(story), story.agent(AGENT))
    attributes = {"gen_ai.operation.name": "agent_step", "gen_ai.tool.call.id": "c1", "error.type": "Timeout"}
    story.feed(story.span("execution", attributes, TOOL, failed=True))
    assert ended(story) == (0, 1)


def test_a_failure_that_a_span_beside_the_call_tells_of_is_the_calls(story):
    knowing(story).feed(tool(story, seconds=1), story.agent(AGENT))
    story.feed(story.tool(AGENT, at=0.1, seconds=0.2, scope="another", **TIMEOUT))
    assert ended(story) == (0, 1)
    assert story.all_turns()["bot"].tool_calls == 1


def test_the_call_is_judged_by_its_failure(story):
    knowing(story)
    for number in range(6):
        said = {"gen_ai.tool.call.result": "not allowed"}
        own = story.tool(AGENT, at=2 * number, span_id=1_000 + number, args=f'{{"q": {number}}}', attributes=said)
        story.feed(own)
    story.feed(story.agent(AGENT))
    for number in range(6):
        story.feed(server(story, 1_000 + number, failed=True))
    turn = story.all_turns()["bot"]
    assert ended(story) == (0, 6)
    assert turn.verdict.kind == "error_stall"


def through_mcp(story, agent):
    """One call through an MCP client, and the time in which the server's span might have come."""
    story.feed(mcp(story, 800, kind=CLIENT), story.tool(agent, span_id=800), story.agent(agent))
    assert ended(story) == (0, 0)
    story.pass_time(0)
    story.pass_time(9.9)
    assert ended(story) == (0, 0)
    story.pass_time(0.2)
    assert ended(story) == (1, 0)


def test_once_one_has_waited_in_vain_the_tools_calls_end_at_once():
    story = counting(outcome_seconds=10, grace_seconds=60)
    through_mcp(story, AGENT)
    story.feed(client(story), tool(story))
    assert ended(story) == (2, 0)


def test_when_spans_inside_begin_to_come_calls_wait_again():
    story = counting(outcome_seconds=10, grace_seconds=60)
    through_mcp(story, AGENT)
    story.feed(client(story), tool(story))
    story.feed(server(story, failed=True))
    assert ended(story) == (2, 0), "it was too late, and is not counted beside"
    story.feed(story.tool(AGENT, at=9, span_id=900))
    story.feed(server(story, 900, failed=True))
    assert ended(story) == (2, 1)


def test_where_the_inner_spans_come_first_nothing_waits(story):
    story.feed(inside(story), tool(story), story.agent(AGENT))
    assert ended(story) == (1, 0)
    story.feed(server(story, 500), mcp(story, 400, span_id=500, kind=CLIENT))
    story.feed(story.tool(AGENT, span_id=400, at=3))
    assert ended(story) == (2, 0)


class Order:
    def __init__(self):
        self.told = []

    def tool_ended(self, turn, call):
        self.told.append(call.tool)


def test_calls_end_in_the_order_in_which_they_were_made(story):
    knowing(story).watch.listeners.append(order := Order())
    story.feed(tool(story), story.tool(AGENT, name="add", at=1), story.agent(AGENT))
    assert order.told == []
    story.feed(inside(story))
    assert order.told == ["search", "add"]


def test_the_end_of_the_turn_ends_the_wait():
    story = counting(outcome_seconds=100, grace_seconds=10)
    story.feed(client(story), tool(story), story.agent(AGENT))
    story.pass_time(10.1)
    assert (len(story.ended), ended(story)) == (1, (1, 0))
    story.feed(server(story, failed=True))
    assert ended(story) == (1, 0)


def test_what_waits_is_bounded(story, monkeypatch):
    monkeypatch.setattr(outcomes, "_WAITING_BYTES", 5 * tool(story).weight)
    knowing(story).feed(*(story.tool(AGENT, at=at) for at in range(20)), story.agent(AGENT))
    assert ended(story) == (15, 0)


def test_without_time_to_wait_calls_end_at_once():
    story = counting()
    story.feed(client(story), tool(story), story.agent(AGENT))
    assert ended(story) == (1, 0)

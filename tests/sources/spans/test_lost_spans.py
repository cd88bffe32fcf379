"""Turns whose spans were lost in part: dropped by a sampler or filter, or sent by nobody."""

import pytest
from tests.sources.spans.story import Story

from turnwatch.sources.spans.span import CLIENT, SERVER

AGENT, LOST, OTHER_LOST = 100, 200, 300
SUM = {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 2}


@pytest.fixture
def story():
    return Story()


@pytest.mark.parametrize("parents", [(LOST, LOST, LOST), (LOST, OTHER_LOST, LOST)], ids=["one lost span", "two"])
def test_calls_below_lost_spans_count_in_the_agent_round_them_and_its_sum_not_once_more(story, parents):
    first, second, third = parents
    story.feed(story.chat(first, at=1), story.tool(second, at=2), story.chat(third, at=3))
    story.feed(story.agent(AGENT, attributes=SUM))
    turns = story.all_turns()
    assert list(turns) == ["bot"]
    turn = turns["bot"]
    assert (turn.tool_calls, turn.iterations, turn.usage.input, turn.stop_reason) == (1, 2, 20, "final_answer")


def test_calls_below_lost_spans_wait_no_longer_than_calls_settle(story):
    story.feed(story.chat(LOST, at=1), story.chat(LOST, at=3), story.agent(AGENT, attributes=SUM))
    story.pass_time(31)
    assert [(turn.agent, turn.iterations, turn.usage.input) for turn in story.ended] == [("bot", 2, 20)]


def test_an_agent_whose_calls_are_elsewhere_in_part_does_not_add_its_sum_to_theirs(story):
    story.feed(story.chat(LOST, at=-1), story.chat(LOST, at=3), story.agent(AGENT, attributes=SUM))
    story.all_turns()
    assert sum(turn.usage.input for turn in story.ended if turn.usage is not None) == 20


def test_an_agent_beside_whom_others_worked_earlier_keeps_its_sum(story):
    story.feed(story.chat(LOST, at=1), story.chat(LOST, at=3), story.agent(AGENT, at=10, attributes=SUM))
    turns = story.all_turns()
    assert turns["bot"].usage.input == 20
    assert sum(turn.usage.input for turn in story.ended) == 40


def test_an_agent_without_calls_below_a_span_that_never_comes_is_a_turn(story):
    story.feed(story.agent(AGENT, LOST, attributes=SUM))
    turn = story.all_turns()["bot"]
    assert (turn.iterations, turn.usage.input) == (0, 20)


def test_an_agent_without_calls_below_a_web_request_is_a_turn(story):
    request = story.span("POST /chat", {"http.request.method": "POST"}, span_id=LOST, seconds=70)
    story.feed(story.agent(AGENT, LOST, attributes=SUM), request)
    story.pass_time(31)
    assert [(turn.agent, turn.usage.input) for turn in story.ended] == [("bot", 20)]


def test_an_agent_that_runs_on_is_not_ended_by_a_silent_one_in_it(story):
    story.feed(story.agent(AGENT, LOST, name="quiet", seconds=1, attributes=SUM))
    story.pass_time(600)
    assert not story.ended
    story.feed(story.chat(LOST, at=601), story.agent(LOST, name="long", seconds=700))
    turn = story.all_turns()["long"]
    assert (turn.iterations, turn.usage.input) == (1, 10)


def seen_by_mcp(story, parent, kind, *, at, seconds, failed=False, **more):
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search"}
    if failed:
        attributes["error.type"] = "tool_error"
    return story.span(
        "tools/call search", attributes, parent, at=at, seconds=seconds, kind=kind, scope="mcp-python-sdk", **more
    )


def test_what_a_server_saw_during_its_clients_call_is_that_call_where_the_span_between_is_lost(story):
    story.feed(seen_by_mcp(story, 900, SERVER, at=0.1, seconds=0.2, failed=True))
    story.feed(seen_by_mcp(story, AGENT, CLIENT, at=0, seconds=0.5))
    story.feed(seen_by_mcp(story, AGENT, CLIENT, at=0, seconds=0.6), seen_by_mcp(story, 901, SERVER, at=2, seconds=1))
    story.feed(story.agent(AGENT))
    story.all_turns()
    assert sum(turn.tool_calls for turn in story.ended) == 3


@pytest.mark.parametrize("order", [1, -1], ids=["server first", "client first"])
@pytest.mark.parametrize("parent", [AGENT, LOST], ids=["under the agent", "under a lost span"])
def test_what_a_server_saw_is_its_clients_call_in_either_order(story, parent, order):
    for number in range(3):
        server = seen_by_mcp(story, parent, SERVER, at=10 * number + 1, seconds=2, failed=number == 1)
        client = seen_by_mcp(story, AGENT, CLIENT, at=10 * number, seconds=5)
        story.feed(*(server, client)[::order])
    story.feed(story.agent(AGENT))
    story.all_turns()
    assert sum(turn.tool_calls for turn in story.ended) == 3


def test_a_client_round_another_has_a_call_of_its_own_though_the_inner_one_heard_its_server(story):
    inner = seen_by_mcp(story, AGENT, CLIENT, at=2, seconds=4)
    story.feed(seen_by_mcp(story, inner.span_id, SERVER, at=3, seconds=2), inner)
    story.feed(seen_by_mcp(story, AGENT, CLIENT, at=0, seconds=10), story.agent(AGENT))
    assert story.all_turns()["bot"].tool_calls == 2


@pytest.mark.parametrize("order", [1, -1])
def test_clients_side_by_side_hear_one_server_each(story, order):
    clients = [seen_by_mcp(story, AGENT, CLIENT, at=0, seconds=seconds) for seconds in (10, 4)]
    servers = [seen_by_mcp(story, AGENT, SERVER, at=at, seconds=seconds) for at, seconds in ((1, 2), (2, 7))]
    story.feed(*(*servers, *clients)[::order], story.agent(AGENT))
    assert story.all_turns()["bot"].tool_calls == 2

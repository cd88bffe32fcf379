"""Agents that run inside a tool call: turns of their own, below that of the agent that made the call."""

import json

import pytest
from tests.sources.spans.story import Story

from turnwatch.sources.spans.graphs import graph_name


@pytest.fixture
def story():
    return Story()


LANGSMITH = "langsmith"


def of_agent(name):
    return {"langsmith.metadata.lc_agent_name": name}


def sub_agent(story, order):
    """A sub-agent without a span and without tools; only its model calls name it."""
    spans = {
        "root": story.span("boss", {"langsmith.span.kind": "chain", **of_agent("boss")}, span_id=1, scope=LANGSMITH),
        "tool": story.tool(1, span_id=2, name="ask", scope=LANGSMITH, attributes=of_agent("boss")),
        "step": story.span("helper", {"langsmith.span.kind": "chain"}, 2, span_id=3, scope=LANGSMITH),
        "model": story.chat(3, at=0.1, seconds=0.2, scope=LANGSMITH, attributes=of_agent("helper")),
        "own": story.chat(1, at=1, scope=LANGSMITH, attributes=of_agent("boss")),
    }
    for name in order.split():
        story.feed(spans[name])
    story.assembler.flush()
    return sorted((turn.agent, turn.iterations, turn.parent and turn.parent.agent) for turn in story.ended)


ORDERS = [
    "model step tool own root",
    "root tool step model own",
    "tool model step own root",
    "own root tool model step",
]


@pytest.mark.parametrize("order", ORDERS)
def test_a_sub_agent_that_only_its_model_calls_name_is_a_turn_of_its_own(story, order):
    assert sub_agent(story, order) == [("boss", 1, None), ("helper", 1, "boss")]


def test_a_model_that_a_tool_asks_in_its_agents_name_counts_in_the_agents_turn(story):
    boss = of_agent("boss")
    story.feed(story.tool(1, span_id=2, name="ask", scope=LANGSMITH, attributes=boss))
    story.feed(story.chat(2, at=0.1, seconds=0.2, scope=LANGSMITH, attributes=boss), story.agent(1, name="boss"))
    assert story.all_turns()["boss"].iterations == 1


@pytest.mark.parametrize("parents_first", [True, False])
def test_an_agent_inside_a_tool_has_its_callers_turn_above_it_in_any_order(story, parents_first):
    spans = [
        story.agent(1, name="boss"),
        story.tool(1, span_id=2, name="ask"),
        story.agent(3, 2, name=""),
        story.agent(4, 3, name="helper"),
        story.tool(4, at=0.1, seconds=0.1, name="look"),
    ]
    for span in spans if parents_first else reversed(spans):
        story.feed(span)
    turns = story.all_turns()
    assert turns["helper"].parent is turns["boss"]
    assert turns["boss"].tool_calls == turns["helper"].tool_calls == 1


@pytest.mark.parametrize(
    ("name", "metadata", "agent"),
    [
        ("planner", {"langgraph_checkpoint_ns": "planner:1", "checkpoint_ns": "planner:1"}, "planner"),
        ("LangGraph", {"langgraph_checkpoint_ns": "planner:1", "checkpoint_ns": "planner:1"}, "planner"),
        ("RunnableSequence", {"langgraph_checkpoint_ns": "planner:1", "checkpoint_ns": "planner:1"}, ""),
        ("model", {"langgraph_checkpoint_ns": "planner:1|model:2", "checkpoint_ns": "planner:1"}, ""),
        ("planner", {"langgraph_checkpoint_ns": "planner:1"}, ""),
        ("tools", {"langgraph_checkpoint_ns": "a:1", "checkpoint_ns": "a:1", "lc_agent_name": "support"}, ""),
    ],
    ids=[
        "graph",
        "graph without a name",
        "chain in a node",
        "node of a graph",
        "node with a graph in it",
        "node named after no agent",
    ],
)
def test_a_graph_is_an_agents_and_a_node_or_chain_is_not(name, metadata, agent):
    span = Story().span(name, {"openinference.span.kind": "CHAIN", "metadata": json.dumps(metadata)})
    assert graph_name(span) == agent


def test_a_user_who_asks_a_supervisor_again_makes_no_loop(story):
    said = {"attributes": {"gen_ai.conversation.id": "thread"}}
    for number in range(6):
        boss, helper, at = 10 * number + 1, 10 * number + 2, 7200 * number
        where = {"trace": number + 1}
        story.feed(
            story.tool(boss, at=at + 1, name="search", attributes={"gen_ai.tool.call.result": "INC-1"}, **where),
            story.tool(helper, at=at + 2, name="grep", attributes={"gen_ai.tool.call.result": "open"}, **where),
            story.agent(helper, boss, at=at + 1.5, seconds=2, name="helper", **said, **where),
            story.agent(boss, at=at, seconds=9, name="boss", **said, **where),
        )
        story.pass_time(30)
    story.all_turns()
    assert [turn.agent for turn in story.ended] == ["helper", "boss"] * 6
    assert [verdict for turn in story.ended for verdict in turn.verdicts] == []

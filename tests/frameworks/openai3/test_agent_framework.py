"""Spans of Microsoft's Agent Framework, with real agents on both of its clients."""

import pytest
from agent_framework import Agent, observability
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from opentelemetry import trace

from frameworks.span_counts import FAILS, HEALTHY, SCRIPTS, fails, spans_count
from frameworks.stub_model import Reply

QUESTION = "Where are my orders?"
CLIENTS = pytest.mark.parametrize("client", [OpenAIChatClient, OpenAIChatCompletionClient])


@pytest.fixture(autouse=True)
def traced(provider, monkeypatch):
    """The framework writes spans to the global provider."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    observability.enable_instrumentation(enable_sensitive_data=True)


def _agent(model, tool, client=OpenAIChatClient, name="support-bot", tools=()):
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = client(model="gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none")
    return Agent(client=llm, name=name, tools=list(tools) or [search_orders])


@CLIENTS
@SCRIPTS
async def test_spans_count_what_happened(model, tool, counts, ended, client, script, truth):
    model.script = script
    await _agent(model, tool, client).run(QUESTION)
    ended()
    spans_count(counts, "support-bot", **truth)


@CLIENTS
async def test_spans_of_a_streamed_run(model, tool, counts, ended, client):
    async for _ in _agent(model, tool, client).run(QUESTION, stream=True):
        pass
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


async def test_failed_tool_calls_are_errors(model, counts, ended):
    await _agent(model, fails).run(QUESTION)
    ended()
    spans_count(counts, "support-bot", **FAILS)


async def test_without_sensitive_data_calls_count_and_lack_arguments(model, tool, counts, ended):
    observability.OBSERVABILITY_SETTINGS.enable_sensitive_data = False
    await _agent(model, tool).run(QUESTION)
    ended()
    spans_count(counts, "support-bot", **HEALTHY, arguments=False)


async def test_an_agent_used_as_a_tool_is_a_turn_of_its_own(model, tool, turns, ended):
    replies = iter([Reply(calls=[("helper", {"task": "Where?"})]), Reply("There."), Reply("They are there.")])
    model.script = lambda number, request: next(replies)
    helper = _agent(model, tool, name="helper")
    await _agent(model, tool, tools=[helper.as_tool()]).run(QUESTION)
    ended()
    made = {turn.agent: (turn.iterations, turn.tool_calls) for turn in turns}
    assert made == {"helper": (1, 0), "support-bot": (2, 1)}

"""AutoGen's own spans and those of OpenInference's instrumentation of it, with real agents."""

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor
from opentelemetry import trace

from frameworks.instrumenting import instrumenting
from frameworks.span_counts import FAILS, HEALTHY, SCRIPTS, fails, spans_count

QUESTION = "Where are my orders?"


@pytest.fixture(autouse=True)
def global_provider(provider, monkeypatch):
    """AutoGen writes its own spans to the global provider."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)


@pytest.fixture
def openinference(provider):
    with instrumenting(provider, AutogenAgentChatInstrumentor()):
        yield


def _agent(model, tool):
    async def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = OpenAIChatCompletionClient(
        model="gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none", include_name_in_message=False
    )
    return AssistantAgent("support_bot", llm, tools=[search_orders], max_tool_iterations=20)


@SCRIPTS
async def test_spans_count_what_happened(model, tool, counts, openinference, ended, script, truth):
    model.script = script
    await _agent(model, tool).run(task=QUESTION)
    ended()
    spans_count(counts, "support_bot", **truth)


async def test_spans_of_a_streamed_run(model, tool, counts, openinference, ended):
    async for _ in _agent(model, tool).run_stream(task=QUESTION):
        pass
    ended()
    spans_count(counts, "support_bot", **HEALTHY)


async def test_failed_tool_calls_are_errors(model, counts, openinference, ended):
    await _agent(model, fails).run(task=QUESTION)
    ended()
    spans_count(counts, "support_bot", **FAILS)


async def test_spans_of_a_team(model, tool, counts, openinference, ended):
    team = RoundRobinGroupChat([_agent(model, tool)], termination_condition=TextMessageTermination("support_bot"))
    await team.run(task=QUESTION)
    ended()
    spans_count(counts, "support_bot", **HEALTHY)


async def test_its_own_spans_alone_tell_of_tools_without_arguments(model, tool, counts, ended):
    await _agent(model, tool).run(task=QUESTION)
    ended()
    spans_count(counts, "support_bot", tool_calls=2, iterations=0, arguments=False)

"""Spans of OpenInference's instrumentation of Agno, with real agents."""

import pytest
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from openinference.instrumentation.agno import AgnoInstrumentor

from frameworks.instrumenting import instrumenting
from frameworks.span_counts import FAILS, HEALTHY, SCRIPTS, fails, spans_count

QUESTION = "Where are my orders?"


@pytest.fixture(autouse=True)
def instrumented(provider):
    with instrumenting(provider, AgnoInstrumentor()):
        yield


def _agent(model, tool):
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = OpenAIChat(id="gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none")
    return Agent(name="support-bot", model=llm, tools=[search_orders], telemetry=False)


@SCRIPTS
def test_spans_count_what_happened(model, tool, counts, ended, script, truth):
    model.script = script
    _agent(model, tool).run(QUESTION)
    ended()
    spans_count(counts, "support-bot", **truth)


async def test_spans_of_an_asynchronous_run(model, tool, counts, ended):
    await _agent(model, tool).arun(QUESTION)
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


def test_spans_of_a_streamed_run(model, tool, counts, ended):
    for _ in _agent(model, tool).run(QUESTION, stream=True):
        pass
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


def test_failed_tool_calls_are_errors(model, counts, ended):
    _agent(model, fails).run(QUESTION)
    ended()
    spans_count(counts, "support-bot", **FAILS)

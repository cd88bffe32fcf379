"""Haystack's own spans, with real agents."""

from typing import Annotated

import pytest
from haystack import tracing
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool as as_tool
from haystack.utils import Secret
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

import turnwatch as tw
from frameworks.span_counts import FAILS, HEALTHY, SCRIPTS, fails, spans_count

QUESTION = [ChatMessage.from_user("Where are my orders?")]
NO_NAME = "haystack"
"""The spans do not name the agent, so it is called after them."""


@pytest.fixture(autouse=True)
def traced(provider, monkeypatch):
    monkeypatch.setattr(tracing.tracer, "is_content_tracing_enabled", True)
    tracing.enable_tracing(OpenTelemetryTracer(provider.get_tracer("haystack")))
    yield
    tracing.disable_tracing()


def _agent(model, tool):
    @as_tool
    def search_orders(customer_id: Annotated[str, "whose orders"]) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = OpenAIChatGenerator(
        model="gpt-4o-mini", api_base_url=f"{model.url}/v1", api_key=Secret.from_token("none"), max_retries=0
    )
    return Agent(chat_generator=llm, tools=[search_orders])


@SCRIPTS
def test_spans_count_what_happened(model, tool, counts, ended, script, truth):
    model.script = script
    _agent(model, tool).run(QUESTION)
    ended()
    spans_count(counts, NO_NAME, **truth)
    assert counts("agent_model_calls_total", model="gpt-4o-mini") == truth["iterations"]


async def test_spans_of_an_asynchronous_run_in_a_turn_that_names_the_agent(model, tool, counts, ended):
    with tw.turn("support-bot"):
        await _agent(model, tool).run_async(QUESTION)
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


def test_failed_tool_calls_are_errors(model, counts, ended):
    _agent(model, fails).run(QUESTION)
    ended()
    spans_count(counts, NO_NAME, **FAILS)

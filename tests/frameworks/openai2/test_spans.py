"""``turnwatch.instrument()`` over the spans of real frameworks and their instrumentations: the counters are right."""

import pytest
from google.adk.agents import Agent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.telemetry import tracing
from google.genai import types
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from frameworks.instrumenting import instrumenting
from frameworks.span_counts import HEALTHY, SCRIPTS, spans_count
from frameworks.stub_model import healthy
from turnwatch.guards.frameworks.google_adk import TurnPlugin

QUESTION = "Where are my orders?"


# Google ADK


async def _adk(model, tool, *plugins):
    def search_orders(customer_id: str) -> str:
        """Search orders.

        Args:
            customer_id: Whose orders.
        """
        return tool(customer_id)

    llm = Gemini(model="gemini-2.5-flash", base_url=model.url)
    runner = InMemoryRunner(
        agent=Agent(name="support_bot", model=llm, tools=[search_orders]), app_name="shop", plugins=list(plugins)
    )
    session = await runner.session_service.create_session(app_name="shop", user_id="u")
    question = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=question):
        pass


@pytest.fixture
def adk(provider, monkeypatch):
    """ADK writes spans to the global provider; arguments only where it is told to."""
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("gcp.vertex.agent"))
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT")


@SCRIPTS
async def test_google_adk(model, tool, counts, adk, ended, script, truth):
    model.script = script
    await _adk(model, tool)
    ended()
    spans_count(counts, "support_bot", **truth)


async def test_google_adk_with_a_guard_counts_once(model, tool, counts, adk, ended):
    await _adk(model, tool, TurnPlugin())
    ended()
    spans_count(counts, "support_bot", **HEALTHY)


# LlamaIndex

NO_NAME = "unknown"
"""The spans name the agent's class and function, and not the agent."""


@pytest.fixture
def llama_index(provider):
    with instrumenting(provider, LlamaIndexInstrumentor()):
        yield


async def _llama_index(model, tool, *, streaming):
    async def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = OpenAI(
        "gpt-4o-mini",
        api_base=f"{model.url}/v1",
        api_key="none",
        additional_kwargs={"stream_options": {"include_usage": True}} if streaming else {},
    )
    agent = FunctionAgent(name="support_bot", llm=llm, tools=[search_orders], streaming=streaming)
    await agent.run(QUESTION, max_iterations=30)


@SCRIPTS
async def test_llama_index(model, tool, counts, llama_index, ended, script, truth):
    model.script = script
    await _llama_index(model, tool, streaming=False)
    ended()
    spans_count(counts, NO_NAME, **truth)


async def test_llama_index_streamed(model, tool, counts, llama_index, ended):
    model.script = healthy
    await _llama_index(model, tool, streaming=True)
    ended()
    spans_count(counts, NO_NAME, **HEALTHY)

"""Spans that LangSmith's client writes instead of sending its own runs, with real LangGraph agents."""

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool as as_langchain_tool
from langchain_core.tracers.langchain import LangChainTracer
from langchain_openai import ChatOpenAI
from langsmith import Client

from frameworks.span_counts import SCRIPTS, spans_count

INPUTS = {"messages": [{"role": "user", "content": "Where are my orders?"}]}


@pytest.fixture
def langsmith(provider):
    client = Client(api_key="none", api_url="http://127.0.0.1:9", tracing_mode="otel", otel_tracer_provider=provider)
    yield client
    client.cleanup()


def _run(model, tool, langsmith):
    @as_langchain_tool
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = ChatOpenAI(model="gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none")
    agent = create_agent(llm, [search_orders], name="support-bot")
    agent.invoke(INPUTS, {"recursion_limit": 60, "callbacks": [LangChainTracer(client=langsmith)]})
    langsmith.flush()


@SCRIPTS
def test_spans_count_what_happened(model, tool, counts, langsmith, ended, script, truth):
    model.script = script
    _run(model, tool, langsmith)
    ended()
    spans_count(counts, "support-bot", **truth)

"""AG2's own spans, with real agents."""

import pytest
from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.middleware import TelemetryMiddleware

from frameworks.span_counts import FAILS, HEALTHY, SCRIPTS, fails, spans_count

QUESTION = "Where are my orders?"


def _agent(model, tool, provider, *, streaming=False, **telemetry):
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = OpenAIConfig("gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none", streaming=streaming)
    spans = TelemetryMiddleware(tracer_provider=provider, agent_name="support-bot", **telemetry)
    return Agent("support-bot", config=llm, tools=[search_orders], middleware=[spans])


@pytest.mark.parametrize("streaming", [False, True])
@SCRIPTS
async def test_spans_count_what_happened(model, tool, counts, provider, ended, script, truth, streaming):
    model.script = script
    await _agent(model, tool, provider, streaming=streaming).ask(QUESTION)
    ended()
    spans_count(counts, "support-bot", **truth)


async def test_failed_tool_calls_are_errors(model, counts, provider, ended):
    await _agent(model, fails, provider).ask(QUESTION)
    ended()
    spans_count(counts, "support-bot", **FAILS)


async def test_without_content_calls_count_and_lack_arguments(model, tool, counts, provider, ended):
    await _agent(model, tool, provider, capture_content=False).ask(QUESTION)
    ended()
    spans_count(counts, "support-bot", **HEALTHY, arguments=False)

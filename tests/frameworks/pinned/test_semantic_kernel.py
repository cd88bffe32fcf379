"""Semantic Kernel's own spans, with real agents."""

import sys
from dataclasses import replace

import pytest
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai import FunctionChoiceBehavior, chat_completion_client_base
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function as as_function
from semantic_kernel.utils.telemetry.agent_diagnostics import decorators as agent_diagnostics
from semantic_kernel.utils.telemetry.model_diagnostics import decorators as model_diagnostics
from semantic_kernel.utils.telemetry.model_diagnostics import function_tracer

from frameworks.span_counts import FAILS, HEALTHY, SCRIPTS, fails, spans_count
from frameworks.stub_model import TOOL, healthy

QUESTION = "Where are my orders?"
NAME = f"Orders-{TOOL}"
"""With the plugin's name in front, to the model as well."""


@pytest.fixture(autouse=True)
def traced(provider, monkeypatch):
    """Its modules keep tracers of the global provider."""
    functions = sys.modules["semantic_kernel.functions.kernel_function"]  # beside it is a function of that name
    for module in (functions, chat_completion_client_base, agent_diagnostics, model_diagnostics):
        monkeypatch.setattr(module, "tracer", provider.get_tracer(module.__name__))
    for module in (agent_diagnostics, model_diagnostics, function_tracer):
        monkeypatch.setattr(module.MODEL_DIAGNOSTICS_SETTINGS, "enable_otel_diagnostics_sensitive", True)


def _agent(model, tool, script=healthy):
    class Orders:
        @as_function
        def search_orders(self, customer_id: str) -> str:
            """Search orders."""
            return tool(customer_id)

    def answer(number, request):
        reply = script(number, request)
        return replace(reply, calls=[(NAME, arguments) for _, arguments in reply.calls])

    model.script = answer
    client = AsyncOpenAI(base_url=f"{model.url}/v1", api_key="none", max_retries=0)
    service = OpenAIChatCompletion("gpt-4o-mini", async_client=client)
    asks = FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=20)
    return ChatCompletionAgent(service=service, name="support-bot", plugins=[Orders()], function_choice_behavior=asks)


async def test_spans_count_what_happened(model, tool, counts, ended):
    await _agent(model, tool).get_response(QUESTION)
    ended()
    spans_count(counts, "support-bot", **HEALTHY, tool=NAME)


@SCRIPTS
async def test_spans_of_a_streamed_run(model, tool, counts, ended, script, truth):
    async for _ in _agent(model, tool, script).invoke_stream(QUESTION):
        pass
    ended()
    spans_count(counts, "support-bot", **truth, tool=NAME)


async def test_failed_tool_calls_are_errors(model, counts, ended):
    await _agent(model, fails).get_response(QUESTION)
    ended()
    spans_count(counts, "support-bot", **FAILS, tool=NAME)

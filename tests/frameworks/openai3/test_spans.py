"""``turnwatch.instrument()`` over the spans of real frameworks and their instrumentations: the counters are right."""

import pytest
from agents import Agent as OpenAIAgent
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_trace_processors
from anthropic import Anthropic, beta_tool
from langchain.agents import create_agent
from langchain_core.tools import tool as as_langchain_tool
from langchain_openai import ChatOpenAI
from mcp import Client
from mcp.server.mcpserver import MCPServer
from openai import AsyncOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from opentelemetry import trace
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from smolagents import OpenAIModel, ToolCallingAgent
from smolagents import tool as as_smolagents_tool
from smolagents.monitoring import LogLevel

import turnwatch as tw
from frameworks.instrumenting import instrumenting
from frameworks.span_counts import HEALTHY, SCRIPTS, spans_count
from frameworks.stub_model import TOOL, Reply
from turnwatch.guards.frameworks.langchain import TurnMiddleware
from turnwatch.guards.frameworks.langchain_callback import TurnCallback
from turnwatch.guards.frameworks.openai_agents import TurnHooks
from turnwatch.guards.frameworks.pydantic_ai import TurnCapability

QUESTION = "Where are my orders?"


# LangGraph


@pytest.fixture
def langchain(provider):
    with instrumenting(provider, LangChainInstrumentor()):
        yield


def _langchain(model, tool, middleware=()):
    @as_langchain_tool
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    llm = ChatOpenAI(model="gpt-4o-mini", base_url=f"{model.url}/v1", api_key="none", stream_usage=True)
    return create_agent(llm, [search_orders], middleware=middleware, name="support-bot")


def _langchain_inputs():
    return {"messages": [{"role": "user", "content": QUESTION}]}, {"recursion_limit": 60}


@SCRIPTS
def test_langgraph(model, tool, counts, langchain, ended, script, truth):
    model.script = script
    _langchain(model, tool).invoke(*_langchain_inputs())
    ended()
    spans_count(counts, "support-bot", **truth)


async def test_langgraph_streamed(model, tool, counts, langchain, ended):
    question, config = _langchain_inputs()
    async for _ in _langchain(model, tool).astream(question, config):
        pass
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


@pytest.mark.parametrize("hook", ["middleware", "callback"])
def test_langgraph_with_a_guard_counts_once(model, tool, counts, langchain, ended, hook):
    question, config = _langchain_inputs()
    if hook == "callback":
        config["callbacks"] = [TurnCallback()]
    _langchain(model, tool, [TurnMiddleware()] if hook == "middleware" else ()).invoke(question, config)
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


# OpenAI Agents SDK


@pytest.fixture
def openai_agents(provider):
    set_trace_processors([])
    with instrumenting(provider, OpenAIAgentsInstrumentor()):
        yield
    set_trace_processors([])


def _openai_agent(model, tool, kind=OpenAIResponsesModel):
    @function_tool
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    client = AsyncOpenAI(base_url=f"{model.url}/v1")
    return OpenAIAgent(name="support-bot", model=kind(model="gpt-4o-mini", openai_client=client), tools=[search_orders])


@SCRIPTS
@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
async def test_openai_agents(model, tool, counts, openai_agents, ended, kind, script, truth):
    model.script = script
    await Runner.run(_openai_agent(model, tool, kind), QUESTION, max_turns=30)
    ended()
    spans_count(counts, "support-bot", **truth)


async def test_openai_agents_streamed(model, tool, counts, openai_agents, ended):
    result = Runner.run_streamed(_openai_agent(model, tool), QUESTION)
    async for _ in result.stream_events():
        pass
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


async def test_openai_agents_with_a_guard_counts_once(model, tool, counts, openai_agents, ended):
    await Runner.run(_openai_agent(model, tool), QUESTION, hooks=TurnHooks())
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


# Pydantic AI


def _pydantic_agent(model, tool, provider, *capabilities):
    llm = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(base_url=f"{model.url}/v1", api_key="none"))
    agent = PydanticAgent(
        llm,
        name="support-bot",
        capabilities=[Instrumentation(settings=InstrumentationSettings(tracer_provider=provider)), *capabilities],
    )

    @agent.tool_plain
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    return agent


@SCRIPTS
async def test_pydantic_ai(model, tool, counts, provider, ended, script, truth):
    model.script = script
    await _pydantic_agent(model, tool, provider).run(QUESTION)
    ended()
    spans_count(counts, "support-bot", **truth)


async def test_pydantic_ai_streamed(model, tool, counts, provider, ended):
    async with _pydantic_agent(model, tool, provider).run_stream(QUESTION) as result:
        await result.get_output()
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


async def test_pydantic_ai_with_a_guard_counts_once(model, tool, counts, provider, ended):
    await _pydantic_agent(model, tool, provider, TurnCapability()).run(QUESTION)
    ended()
    spans_count(counts, "support-bot", **HEALTHY)


# Anthropic's client, which has spans of its own


@pytest.fixture
def anthropic_spans(monkeypatch):
    """The client writes spans to the global provider; ``instrument()`` makes one where there is none."""
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE", "content")
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", trace.Once())


def _run_tools(model, tool, wrap=lambda client: client):
    @beta_tool
    def search_orders(customer_id: str) -> str:
        """Search orders.

        Args:
            customer_id: Whose orders.
        """
        return tool(customer_id)

    runner = wrap(Anthropic(base_url=model.url)).beta.messages.tool_runner(
        model="claude-haiku-4-5",
        max_tokens=500,
        messages=[{"role": "user", "content": QUESTION}],
        tools=[search_orders],
    )
    return runner.until_done()


@SCRIPTS
def test_anthropic(model, tool, counts, anthropic_spans, script, truth):
    model.script = script
    processor = tw.instrument()
    _run_tools(model, tool)
    processor.shutdown()
    agents = {"agent": next(iter(_agents(counts)))}
    spans_count(counts, agents["agent"], **truth)


def test_anthropic_with_a_guard_counts_once(model, tool, counts, anthropic_spans):
    processor = tw.instrument()
    _run_tools(model, tool, lambda client: tw.wrap(client, agent="support-bot"))
    processor.shutdown()
    spans_count(counts, "support-bot", **HEALTHY)


def _agents(counts):
    return {
        sample.labels["agent"]
        for metric in counts._registry.collect()
        for sample in metric.samples
        if sample.name == "agent_model_calls_total"
    }


# smolagents


@pytest.fixture
def smolagents(provider):
    with instrumenting(provider, SmolagentsInstrumentor()):
        yield


def _smolagents(model, tool, **options):
    @as_smolagents_tool
    def search_orders(customer_id: str) -> str:
        """Search orders.

        Args:
            customer_id: Whose orders.
        """
        return tool(customer_id)

    llm = OpenAIModel("gpt-4o-mini", api_base=f"{model.url}/v1", api_key="none")
    agent = ToolCallingAgent(
        [search_orders], llm, name="support_bot", max_steps=20, verbosity_level=LogLevel.OFF, **options
    )
    agent.run(QUESTION)


def _with_final_answer(script):
    """A smolagents model answers by calling a tool."""

    def answer(number, request):
        reply = script(number, request)
        return Reply(calls=[("final_answer", {"answer": reply.text})]) if reply.text else reply

    return answer


@SCRIPTS
def test_smolagents(model, tool, counts, smolagents, ended, script, truth):
    model.script = _with_final_answer(script)
    _smolagents(model, tool)
    ended()
    spans_count(counts, "support_bot", **truth)


# MCP


async def test_mcp(tool, counts, provider, ended, monkeypatch):
    """The library's own spans say no arguments: its calls count, and are not judged."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    server = MCPServer("shop")

    @server.tool()
    def search_orders(customer_id: str) -> str:
        return tool(customer_id)

    tracer = provider.get_tracer("my.app")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-bot"}
    async with Client(server) as client:
        with tracer.start_as_current_span("invoke_agent support-bot", attributes=agent):
            for customer in ("C-1", "C-2"):
                await client.call_tool(TOOL, {"customer_id": customer})
    ended()
    assert counts("agent_tool_calls_total", agent="support-bot", tool=TOOL) == 2
    assert counts("turnwatch_fingerprint_missing_total") == 2
    assert counts("turnwatch_internal_errors_total") == 0

"""A wrapped session of the real MCP library, with a server in the same process."""

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

import turnwatch as tw
from turnwatch.guards.frameworks.mcp import wrap_session


@pytest.fixture
def server(tool):
    server = MCPServer("shop")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def search_orders(customer_id: str) -> str:
        return tool(customer_id)

    @server.tool()
    def broken() -> str:
        raise ValueError("no database")

    return server


async def _ask(client, customers, **guarding):
    async with tw.turn("support-bot", **guarding):
        for customer in customers:
            await client.call_tool("search_orders", {"customer_id": customer})


async def test_a_loop_is_stopped_by_the_fourth_call(server, tool, counts):
    async with Client(server) as client:
        wrap_session(client)
        with pytest.raises(tw.LoopDetected):
            await _ask(client, ["C-7841"] * 10, on_loop="stop")
    assert len(tool.calls) <= 4
    assert counts("agent_turns_total", stop_reason="loop_detected") == 1


async def test_a_healthy_turn_is_untouched_and_counted(server, tool, counts):
    async with Client(server) as client:
        wrap_session(wrap_session(client))
        await client.list_tools()
        async with tw.turn("support-bot", on_loop="stop") as turn:
            result = await client.call_tool("search_orders", {"customer_id": "C-1"})
            await client.call_tool("broken")
    assert result.content[0].text == "no orders of C-1"
    assert turn.tool_calls == 2
    assert counts("agent_tool_calls_total", agent="support-bot", tool="search_orders", outcome="ok") == 1
    assert counts("agent_tool_calls_total", agent="support-bot", tool="broken", outcome="error") == 1


async def test_a_budget_stop_leaves_partial_results(server, tool, counts):
    async with Client(server) as client:
        wrap_session(client)
        with pytest.raises(tw.ToolBudgetExceeded) as stopped:
            await _ask(client, ["C-1", "C-2"], limits=tw.Limits(max_tool_calls=1))
    assert stopped.value.partial.results == (("search_orders", "no orders of C-1"),)
    assert tool.calls == ["C-1"]


async def test_outside_a_turn_nothing_is_counted(server, tool, counts):
    async with Client(server) as client:
        await wrap_session(client).call_tool("search_orders", {"customer_id": "C-1"})
    assert counts("agent_tool_calls_total") == 0


def test_what_is_no_session_is_refused():
    with pytest.raises(TypeError):
        wrap_session(object())

"""A tool that tells of its own calls, as instrumented ones and those of MCP do, behind the gateway."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider

import turnwatch as tw
from turnwatch.core.current_call import current_call
from turnwatch.sources.spans.processor import TurnSpanProcessor


async def test_a_call_through_the_gateway_is_counted_once_whose_tool_has_a_span_of_its_own(watch):
    provider = TracerProvider(shutdown_on_exit=False)
    processor = TurnSpanProcessor(watch)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("my.instrumentation")

    def traced(tool: str) -> str:
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
            return "found"

    def find(q: int) -> str:
        return traced("find")

    async def search(q: int) -> str:
        return traced("search")

    gateway = tw.ToolGateway(impls={"find": find, "search": search}, watch=watch)
    with tw.turn("a", watch=watch) as turn:
        gateway.call("find", {"q": 1})
        await gateway.acall("find", {"q": 2})
        await gateway.acall("search", {"q": 3})
        assert current_call() is None
    processor.shutdown()
    assert turn.tool_calls == watch.total("agent_tool_calls_total") == 3

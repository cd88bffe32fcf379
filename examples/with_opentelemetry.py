"""One line for an agent that already makes OpenTelemetry GenAI spans, whatever framework makes them.

Run it, then look at http://127.0.0.1:9464/metrics. The spans below stand in for the framework's.
"""

import json
import sys

from opentelemetry import trace

import turnwatch as tw

tw.instrument(port=9464)

tracer = trace.get_tracer("support-bot")
with tracer.start_as_current_span("invoke_agent support-bot") as agent:
    agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-bot"})
    for _ in range(3):
        with tracer.start_as_current_span("chat claude-sonnet-4-5") as chat:
            chat.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-sonnet-4-5"})
            chat.set_attributes({"gen_ai.usage.input_tokens": 6_000, "gen_ai.usage.output_tokens": 150})
        with tracer.start_as_current_span("execute_tool search_orders") as tool:
            tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_orders"})
            tool.set_attribute("gen_ai.tool.call.arguments", json.dumps({"customer_id": "C-7841"}))
            tool.set_attribute("gen_ai.tool.call.result", "[]")

print("Serving /metrics; Ctrl-D or Ctrl-C ends it.")
sys.stdin.read()

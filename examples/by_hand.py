"""A turn told by hand: model calls and tool calls in your own agent loop.

Run it, then look at http://127.0.0.1:9464/metrics.
"""

import sys

import turnwatch as tw


def search_orders(customer_id: str) -> list[str]:  # noqa: ARG001 it finds nothing anyway
    """Stand in for a tool that finds nothing."""
    return []


tw.start_metrics_server(port=9464)

with tw.turn(agent="support-bot", conversation_id="c-17") as turn:
    for _ in range(3):
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=6_000, output_tokens=150)  # or call.usage(reply)
        rows = turn.call_tool("search_orders", search_orders, customer_id="C-7841")

print(turn.explain())
print("Serving /metrics; Ctrl-D or Ctrl-C ends it.")
sys.stdin.read()

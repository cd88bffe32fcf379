"""What a span costs in the SDK's own process, and what turnwatch adds at its end.

    python bench/span_cost.py

- span: starting it, setting its attributes and ending it, with a sampler that keeps it and no processor at all.
- on_start, on_end: TurnSpanProcessor's own two calls for it.

Processor time in microseconds, best of the rounds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import cast

from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.trace import Tracer

from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings
from turnwatch.sources.spans.processor import TurnSpanProcessor

SPANS = 2_000
ROUNDS = 7

Attributes = Callable[[int], dict[str, str | int]]


def _web(number: int) -> dict[str, str | int]:
    return {
        "http.request.method": "GET",
        "url.path": f"/orders/{number}",
        "url.scheme": "https",
        "server.address": "shop.example",
        "http.route": "/orders/{order}",
        "http.response.status_code": 200,
    }


def _tool(number: int) -> dict[str, str | int]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search_orders",
        "gen_ai.tool.call.id": f"call_{number}",
        "gen_ai.tool.call.arguments": f'{{"customer_id": "C-{number}", "limit": 25, "open": true}}',
        "gen_ai.tool.call.result": f"{number} orders: " + "o" * 200,
    }


def _model(number: int) -> dict[str, str | int]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.provider.name": "openai",
        "gen_ai.usage.input_tokens": 1000 + number,
        "gen_ai.usage.output_tokens": 100,
    }


def _spans(tracer: Tracer, name: str, attributes: Attributes, first: int) -> list[Span]:
    ended: list[Span] = []
    with tracer.start_as_current_span("invoke_agent support-bot") as root:
        root.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-bot"})
        for number in range(first, first + SPANS):
            span = cast("Span", tracer.start_span(name))
            span.set_attributes(attributes(number))
            span.end()
            ended.append(span)
    return ended


def _microseconds(began: float) -> float:
    return (time.thread_time() - began) / SPANS * 1e6


def measure(scope: str, name: str, attributes: Attributes) -> tuple[float, float, float]:
    """Microseconds of the span itself, of on_start and of on_end."""
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer(scope)
    own, starts, ends = [], [], []
    for number in range(ROUNDS):
        began = time.thread_time()
        spans = _spans(tracer, name, attributes, number * SPANS)
        own.append(_microseconds(began))
        processor = TurnSpanProcessor(Watch(Settings(), Store()))
        began = time.thread_time()
        for span in spans:
            processor.on_start(span)
        starts.append(_microseconds(began))
        began = time.thread_time()
        for span in spans:
            processor.on_end(span)
        ends.append(_microseconds(began))
        processor.shutdown()
    return min(own), min(starts), min(ends)


def main() -> None:
    """Print one table."""
    logging.disable()
    print(f"{'':>30} {'span':>7} {'on_start':>9} {'on_end':>7}")
    for label, scope, name, attributes in (
        ("web, known scope", "opentelemetry.instrumentation.fastapi", "GET /orders/{order}", _web),
        ("web, scope nobody declared", "shop.web", "GET /orders/{order}", _web),
        ("tool", "my.agents", "execute_tool search_orders", _tool),
        ("model", "my.agents", "chat gpt-4o-mini", _model),
    ):
        span, on_start, on_end = measure(scope, name, attributes)
        print(f"{label:>30} {span:>7.2f} {on_start:>9.2f} {on_end:>7.2f}")


if __name__ == "__main__":
    main()

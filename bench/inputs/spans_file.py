"""What the Collector's file exporter writes for a shop with a support agent: OTLP JSON, one request a line.

    python bench/inputs/spans_file.py FILE --megabytes 2000 [--only-agents]

A request of the shop is a trace of web and database spans; every tenth also asks the agent, whose turn has five model
calls with their messages and four tool calls with arguments and results. Some turns loop; some traces are cut off and
never close. With --only-agents there is nothing but turns. The same arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import orjson

_START = 1_790_000_000_000_000_000
_SECOND = 1_000_000_000
_SPANS_A_LINE = 100
_WORDS = [
    "order",
    "refund",
    "parcel",
    "customer",
    "invoice",
    "late",
    "please",
    "address",
    "delivery",
    "again",
    "status",
]


class _Trace:
    """The spans of one trace, children before parents, by instrumentation."""

    def __init__(self, chance: random.Random, at: int) -> None:
        self.id = f"{chance.getrandbits(128):032x}"
        self.now = at
        self.spans: list[tuple[str, dict[str, object]]] = []
        self._chance = chance

    def new_id(self) -> str:
        return f"{self._chance.getrandbits(64):016x}"

    def add(
        self,
        scope: str,
        name: str,
        kind: int,
        parent: str,
        began: int,
        attributes: dict[str, object],
        span_id: str = "",
    ):
        self.now += self._chance.randrange(1_000_000, 40_000_000)
        span: dict[str, object] = {"traceId": self.id, "spanId": span_id or self.new_id()}
        if parent:
            span["parentSpanId"] = parent
        span.update(
            flags=256,
            name=name,
            kind=kind,
            startTimeUnixNano=str(began),
            endTimeUnixNano=str(self.now),
            attributes=[{"key": key, "value": _value(value)} for key, value in attributes.items()],
            status={},
        )
        self.spans.append((scope, span))


def _value(value: object) -> dict[str, object]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return (
        {"arrayValue": {"values": [_value(each) for each in value]}}
        if isinstance(value, list)
        else {"stringValue": value}
    )


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


def _web(trace: _Trace, root: str, chance: random.Random) -> None:
    for _ in range(chance.randrange(4, 9)):
        began = trace.now
        trace.add(
            "opentelemetry.instrumentation.psycopg2",
            "SELECT",
            3,
            root,
            began,
            {
                "db.system": "postgresql",
                "db.name": "shop",
                "db.statement": f"SELECT id, state, total FROM orders WHERE customer = %s LIMIT {chance.randrange(9)}",
                "db.user": "shop",
                "net.peer.name": "db.internal",
                "net.peer.port": 5432,
            },
        )


def _agent(trace: _Trace, parent: str, chance: random.Random) -> None:
    agent, began, model = trace.new_id(), trace.now, chance.choice(["gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5"])
    provider = "anthropic" if model.startswith("claude") else "openai"
    messages = [{"role": "user", "parts": [{"type": "text", "content": _text(chance, 30)}]}]
    loops, cut_off = chance.random() < 0.05, chance.random() < 0.01
    customer = f"C-{chance.randrange(10_000)}"
    calls = 9 if loops else 4
    for number in range(calls + 1):
        call_began, call_id = trace.now, f"call_{chance.getrandbits(48):012x}"
        arguments = {"customer_id": customer, "page": 0 if loops else number, "open": True}
        parts: list[dict[str, object]] = [
            {"type": "tool_call", "id": call_id, "name": "search_orders", "arguments": arguments}
        ]
        if number == calls:
            parts = [{"type": "text", "content": _text(chance, 40)}]
        trace.add(
            "opentelemetry.instrumentation.openai_v2",
            f"chat {model}",
            3,
            agent,
            call_began,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model,
                "gen_ai.response.model": model,
                "gen_ai.response.id": f"resp_{chance.getrandbits(64):016x}",
                "gen_ai.response.finish_reasons": ["stop" if number == calls else "tool_calls"],
                "gen_ai.usage.input_tokens": 900 + 300 * number,
                "gen_ai.usage.output_tokens": 60,
                "server.address": "api.example.com",
                "gen_ai.input.messages": orjson.dumps(messages).decode(),
                "gen_ai.output.messages": orjson.dumps([{"role": "assistant", "parts": parts}]).decode(),
            },
        )
        if number == calls:
            break
        tool_began = trace.now
        result = (
            "[]"
            if loops
            else orjson.dumps(
                [{"order": f"O-{chance.randrange(10**6)}", "note": _text(chance, 12)} for _ in range(5)]
            ).decode()
        )
        trace.add(
            "shop.agents",
            "execute_tool search_orders",
            1,
            agent,
            tool_began,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search_orders",
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": call_id,
                "gen_ai.tool.call.arguments": orjson.dumps(arguments).decode(),
                "gen_ai.tool.call.result": result,
            },
        )
        messages.append({"role": "assistant", "parts": parts})
        messages.append({"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": result}]})
    if not cut_off:
        about: dict[str, object] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "support-bot",
            "gen_ai.conversation.id": f"conv-{chance.getrandbits(40):010x}",
        }
        trace.add("shop.agents", "invoke_agent support-bot", 1, parent, began, about, agent)


def lines(megabytes: float, *, only_agents: bool = False, seed: int = 1) -> Iterator[bytes]:
    """Lines of about so many megabytes in all."""
    chance = random.Random(seed)
    left, number = megabytes * 1e6, 0
    waiting: list[tuple[str, dict[str, object]]] = []
    while left > 0:
        number += 1
        trace = _Trace(chance, _START + number * _SECOND // 20)
        root, began = trace.new_id(), trace.now
        if only_agents:
            _agent(trace, "", chance)
        else:
            _web(trace, root, chance)
            if number % 10 == 0:
                _agent(trace, root, chance)
            trace.add(
                "opentelemetry.instrumentation.fastapi",
                "POST /orders/{order}",
                2,
                "",
                began,
                {
                    "http.request.method": "POST",
                    "url.path": f"/orders/{number}",
                    "url.scheme": "https",
                    "server.address": "shop.example",
                    "http.route": "/orders/{order}",
                    "http.response.status_code": 200,
                    "user_agent.original": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
                    "client.address": "203.0.113.7",
                },
                root,
            )
        waiting.extend(trace.spans)
        if len(waiting) >= _SPANS_A_LINE:
            line = _request(waiting)
            waiting = []
            left -= len(line)
            yield line


def _request(spans: list[tuple[str, dict[str, object]]]) -> bytes:
    scopes: dict[str, list[dict[str, object]]] = {}
    for scope, span in spans:
        scopes.setdefault(scope, []).append(span)
    resource = {"service.name": "shop", "telemetry.sdk.language": "python", "k8s.pod.name": "shop-7d9f-x2x1z"}
    return (
        orjson.dumps(
            {
                "resourceSpans": [
                    {
                        "resource": {
                            "attributes": [{"key": key, "value": _value(value)} for key, value in resource.items()]
                        },
                        "scopeSpans": [
                            {"scope": {"name": scope, "version": "0.60b0"}, "spans": each}
                            for scope, each in scopes.items()
                        ],
                    }
                ]
            }
        )
        + b"\n"
    )


def main() -> None:
    """Write one file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--megabytes", type=float, default=2000)
    parser.add_argument("--only-agents", action="store_true")
    options = parser.parse_args()
    with options.file.open("wb") as file:
        file.writelines(lines(options.megabytes, only_agents=options.only_agents))


if __name__ == "__main__":
    main()

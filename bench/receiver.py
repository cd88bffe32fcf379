"""How many spans a second the receiver takes on one core, beside plain decoding of the same bodies.

    python bench/receiver.py

- parsed: protobuf's own parser, which is written in C, and nothing else: no value reaches Python.
- read: parsed, and every span with its attributes, events and resource read into Python objects.
- taken in: the receiver's whole work on one thread: bound, decode, put turns together, hash, count, judge.
- over HTTP: a ``turnwatch serve`` process on loopback with one client. Processor time is read from /proc, so the
  client's own does not count.

Processor time throughout, best of the rounds, every round with bodies of its own: spans that came before would be
taken for duplicates. GenAI bodies are agents with five model and five tool calls a turn; unrelated ones are what a web
service writes.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import requests
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store
from turnwatch.service.intake import Intake
from turnwatch.service.run import collecting_rarely
from turnwatch.settings import Settings
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.otlp import spans_of_body

SPANS_PER_BODY = 512
BODIES = 30
ROUNDS = 3
_chance = random.Random(1)
_START = 1_790_000_000_000_000_000


def _attributes(values: dict[str, str | int]) -> list[KeyValue]:
    return [
        KeyValue(key=key, value=AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value))
        for key, value in values.items()
    ]


def _add(spans, trace: bytes, parent: bytes, name: str, at: int, values: dict[str, str | int], ns: int = 900) -> bytes:
    span_id = _chance.randbytes(8)
    spans.add(
        trace_id=trace,
        span_id=span_id,
        parent_span_id=parent,
        name=name,
        kind=1,
        start_time_unix_nano=_START + at,
        end_time_unix_nano=_START + at + ns,
        attributes=_attributes(values),
    )
    return span_id


def genai_body(number: int) -> bytes:
    """Agents that call a model and a tool by turns, as the conventions have it."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(_attributes({"service.name": "shop", "telemetry.sdk.language": "python"}))
    spans = resource.scope_spans.add(scope={"name": "my.agents"}).spans
    while len(spans) < SPANS_PER_BODY:
        trace, root = _chance.randbytes(16), _chance.randbytes(8)
        began = number * 1_000_000 + len(spans) * 1000  # one after the other: an exporter sends spans as they end
        for call in range(5):
            at = began + call * 2000
            usage = {"gen_ai.usage.input_tokens": 1000 + call, "gen_ai.usage.output_tokens": 100}
            model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini", **usage}
            _add(spans, trace, root, "chat gpt-4o-mini", at, {**model, "gen_ai.provider.name": "openai"})
            arguments = f'{{"customer_id": "C-{number}-{call}", "limit": 25, "open": true}}'
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_orders"}
            said = {"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": f"{call} orders: " + "o" * 200}
            _add(spans, trace, root, "execute_tool search_orders", at + 1000, {**tool, **said})
        about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support-bot"}
        _add(spans, trace, b"", "invoke_agent support-bot", began, about, ns=10_000)
        spans[-1].span_id = root
    return request.SerializeToString()


def unrelated_body(number: int) -> bytes:
    """What a web service writes."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(_attributes({"service.name": "shop", "telemetry.sdk.language": "python"}))
    spans = resource.scope_spans.add(scope={"name": "opentelemetry.instrumentation.fastapi"}).spans
    for at in range(SPANS_PER_BODY):
        values = {
            "http.request.method": "GET",
            "url.path": f"/orders/{number}/{at}",
            "url.scheme": "https",
            "server.address": "shop.example",
            "http.route": "/orders/{order}/{line}",
            "http.response.status_code": 200,
            "user_agent.original": "Mozilla/5.0",
            "network.protocol.version": "1.1",
            "client.address": "203.0.113.7",
        }
        _add(spans, _chance.randbytes(16), b"", "GET /orders/{order}/{line}", at, values)
    return request.SerializeToString()


Rounds = list[list[bytes]]


def parsed(rounds: Rounds) -> float:
    """Seconds a span."""
    return _best(rounds, lambda bodies: [ExportTraceServiceRequest.FromString(body) for body in bodies])


def read(rounds: Rounds) -> float:
    """Seconds a span."""
    return _best(rounds, lambda bodies: [spans_of_body(body) for body in bodies])


def taken_in(rounds: Rounds) -> float:
    """Seconds a span. A body a second, so that turns end as well."""
    now = [1_790_000_000.0]
    watch = Watch(Settings(), Store(), clock=lambda: now[0])
    intake = Intake(watch, Assembler(watch))

    def take(bodies: list[bytes]) -> None:
        for body in bodies:
            now[0] += 1.0
            intake._take(body, "traces", "protobuf", "identity")

    with collecting_rarely():
        return _best(rounds, take)


def over_http(rounds: Rounds) -> float:
    """Seconds a span, of the service's process."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--port=0", "--metrics-port=0", "--no-grpc", f"--state-dir={folder}"]
        process = subprocess.Popen(
            [sys.executable, "-c", "from turnwatch.cli import main; main()", "serve", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            url = process.stdout.readline().split(" on ")[1].strip() + "/v1/traces"
            times = []
            with requests.Session() as session:
                for bodies in rounds:
                    before = _processor_seconds(process.pid)
                    for body in bodies:
                        answer = session.post(url, data=body, headers={"content-type": "application/x-protobuf"})
                        answer.raise_for_status()
                    times.append(_processor_seconds(process.pid) - before)
            return min(times) / (BODIES * SPANS_PER_BODY)
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def _processor_seconds(pid: int) -> float:
    """Of all its threads, to the nanosecond: the times in /proc/PID/stat are hundredths of a second."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9


def _best(rounds: Rounds, work: Callable[[list[bytes]], object]) -> float:
    times = []
    for bodies in rounds:
        began = time.thread_time()
        work(bodies)
        times.append(time.thread_time() - began)
    return min(times) / (BODIES * SPANS_PER_BODY)


def main() -> None:
    """Print one table."""
    print(f"{'spans':>10} {'bytes':>6} {'parsed':>13} {'read':>11} {'taken in':>11} {'to read':>8} {'over HTTP':>11}")
    for name, make in (("GenAI", genai_body), ("unrelated", unrelated_body)):
        rounds = [[make(number) for number in range(BODIES)] for _ in range(ROUNDS)]
        size = sum(map(len, rounds[0])) / (BODIES * SPANS_PER_BODY)
        in_python, taken = read(rounds), taken_in(rounds)
        print(
            f"{name:>10} {size:>6.0f} {1 / parsed(rounds):>11,.0f}/s {1 / in_python:>9,.0f}/s {1 / taken:>9,.0f}/s "
            f"{taken / in_python:>7.1f}x {1 / over_http(rounds):>9,.0f}/s"
        )


if __name__ == "__main__":
    main()

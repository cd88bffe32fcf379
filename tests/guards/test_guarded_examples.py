"""The examples run with the real client libraries against an endpoint on loopback."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import anthropic
import openai
import pytest

import turnwatch as tw
from turnwatch.core.default import set_default_watch

EXAMPLES = Path(__file__).parents[2] / "examples"

Reply = dict[str, Any]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Endpoint:
    """A model's endpoint that answers by a script: the last answer again and again."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.script: list[Reply] = []
        self.as_reply: Callable[[Reply], dict[str, Any]] = lambda reply: reply
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                endpoint.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                reply = endpoint.script.pop(0) if len(endpoint.script) > 1 else endpoint.script[0]
                body = json.dumps(endpoint.as_reply(reply)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint(watch) -> Iterator[Endpoint]:
    set_default_watch(watch)
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()
    set_default_watch(None)


def calls(*asked: tuple[str, dict[str, Any]], tokens: int = 100) -> Reply:
    return {"asked": asked, "text": "Let me look.", "tokens": tokens}


def says(text: str) -> Reply:
    return {"asked": (), "text": text, "tokens": 100}


SEARCH = ("search_orders", {"customer_id": "C-1"})
REFUND = ("refund", {"order": "C-7841", "cents": 500})


def anthropic_reply(reply: Reply) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply["text"]}]
    blocks += [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": args}
        for number, (name, args) in enumerate(reply["asked"])
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": blocks,
        "stop_reason": "tool_use" if reply["asked"] else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": reply["tokens"], "output_tokens": reply["tokens"]},
    }


def openai_reply(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply["text"]}
    if reply["asked"]:
        message["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for number, (name, args) in enumerate(reply["asked"])
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if reply["asked"] else "stop"}],
        "usage": {
            "prompt_tokens": reply["tokens"],
            "completion_tokens": reply["tokens"],
            "total_tokens": 2 * reply["tokens"],
        },
    }


class OnSdk:
    """One of the examples, with its client library."""

    module: ModuleType

    def gateway(self, options: dict[str, Any]) -> tw.ToolGateway:
        return self.module.make_gateway(options.pop("tools", self.module.TOOLS))


class OnAnthropic(OnSdk):
    """The Anthropic example, called the way both are tested."""

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint.as_reply = anthropic_reply
        self.module = example("guarded_anthropic")
        self.endpoint = endpoint

    async def run(self, **options: Any) -> str:
        with anthropic.Anthropic(api_key="none", base_url=self.endpoint.url, max_retries=0) as client:
            return self.module.run_agent(client, self.gateway(options), "Where is it?", **options)

    def tools(self, ran: list[str]) -> dict[str, Any]:
        return {name: lambda _name=name, **args: ran.append(_name) or f"{_name}: done" for name in self.module.TOOLS}


class OnOpenAI(OnSdk):
    """The OpenAI example, called the way both are tested."""

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint.as_reply = openai_reply
        self.module = example("guarded_openai")
        self.endpoint = endpoint

    async def run(self, **options: Any) -> str:
        client = openai.AsyncOpenAI(api_key="none", base_url=f"{self.endpoint.url}/v1", max_retries=0)
        async with client:
            return await self.module.run_agent(client, self.gateway(options), "Where is it?", **options)

    def tools(self, ran: list[str]) -> dict[str, Any]:
        def tool(name: str) -> Any:
            async def run(**_: Any) -> str:
                ran.append(name)
                return f"{name}: done"

            return run

        return {name: tool(name) for name in self.module.TOOLS}


@pytest.fixture(params=[OnAnthropic, OnOpenAI])
def agent(request, endpoint):
    return request.param(endpoint)


async def test_a_healthy_run_is_untouched(agent, endpoint, watch):
    endpoint.script = [calls(SEARCH), calls(REFUND), says("Refunded.")]
    assert await agent.run(conversation_id="c-1") == "Refunded."
    assert len(endpoint.requests) == 3
    assert watch.value("agent_turns_total", "support-bot", "final_answer") == 1
    assert watch.value("agent_tool_calls_total", "support-bot", "refund", "ok") == 1
    assert watch.total("agent_guard_stops_total") == 0
    assert watch.faults == 0


async def test_a_loop_is_stopped_by_call_four(agent, endpoint, watch):
    endpoint.script = [calls(SEARCH)]
    with pytest.raises(tw.LoopDetected) as stopped:
        await agent.run(on_loop="stop")
    assert len(endpoint.requests) == 4
    assert stopped.value.partial == "Let me look."
    assert watch.value("agent_turns_total", "support-bot", "loop_detected") == 1


async def test_a_nudge_is_in_the_models_next_request(agent, endpoint):
    endpoint.script = [calls(SEARCH)] * 4 + [says("I could not find it.")]
    assert await agent.run(on_loop="nudge") == "I could not find it."
    told = [json.dumps(request["messages"]) for request in endpoint.requests]
    assert ["Try something else" in text for text in told] == [False] * 4 + [True]


async def test_a_nudge_that_does_not_help_is_followed_by_a_stop(agent, endpoint):
    endpoint.script = [calls(SEARCH)]
    with pytest.raises(tw.LoopDetected):
        await agent.run(on_loop="nudge")
    assert len(endpoint.requests) == 5


@pytest.mark.parametrize(
    ("limits", "stop_reason"),
    [
        (tw.Limits(max_iterations=2), "max_iterations"),
        (tw.Limits(max_tool_calls=2), "max_tool_calls"),
        (tw.Limits(max_usd=0.02), "max_usd"),
        (tw.Limits(max_tokens=3_000), "max_turn_tokens"),
    ],
)
async def test_a_budget_stop_leaves_partial_results(agent, endpoint, watch, limits, stop_reason):
    endpoint.script = [calls(("search_orders", {"customer_id": f"C-{number}"}), tokens=500) for number in range(9)]
    with pytest.raises(tw.TurnStopped) as stopped:
        await agent.run(limits=limits)
    assert stopped.value.stop_reason == stop_reason
    assert stopped.value.partial == "Let me look."
    assert watch.value("agent_guard_stops_total", "support-bot", stop_reason) == 1


async def test_identical_calls_of_one_reply_run_once(agent, endpoint):
    ran: list[str] = []
    endpoint.script = [calls(SEARCH, SEARCH, SEARCH), says("Found.")]
    assert await agent.run(tools=agent.tools(ran)) == "Found."
    assert ran == ["search_orders"]


async def test_what_a_tool_raises_is_told_to_the_model(agent, endpoint):
    endpoint.script = [calls(("no_such_tool", {})), says("Sorry.")]
    assert await agent.run() == "Sorry."
    assert "unknown tool" in json.dumps(endpoint.requests[1]["messages"])

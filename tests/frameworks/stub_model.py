"""A model on loopback that follows a script: Chat Completions, Responses, Anthropic Messages and Gemini.

It keeps every request, so that a test can see what the agent's framework really sent.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INPUT_TOKENS = 1000
OUTPUT_TOKENS = 100
TOOL = "search_orders"
ARGUMENTS = {"customer_id": "C-7841"}


@dataclass
class Reply:
    """What the model says: a text, or calls of tools as (name, arguments)."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    input_tokens: int = INPUT_TOKENS
    output_tokens: int = OUTPUT_TOKENS
    status: int = 200


@dataclass
class Request:
    """One request as it arrived."""

    path: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """The whole body as text, for looking for a nudge."""
        return json.dumps(self.body)

    @property
    def was_nudged(self) -> bool:
        return "Doing it again will not help" in self.text


Script = Callable[[int, Request], Reply]


def loop(number: int, request: Request) -> Reply:
    """Asks for the same call again and again; gives up after twelve, so that no test runs for ever."""
    if number > 12:
        return Reply("I give up.")
    return Reply(calls=[(TOOL, ARGUMENTS)])


def loop_until_nudged(number: int, request: Request) -> Reply:
    """Asks for the same call until it is told that this will not help."""
    return Reply("I could not find the order.") if request.was_nudged else loop(number, request)


def healthy(number: int, request: Request) -> Reply:
    """Two different calls, then an answer."""
    if number <= 2:
        return Reply(calls=[(TOOL, {"customer_id": f"C-{number}"})])
    return Reply("Both orders are on their way.")


def different_calls(number: int, request: Request) -> Reply:
    """A new call each time: no loop, but it does not end either."""
    if number > 12:
        return Reply("I give up.")
    return Reply(calls=[(TOOL, {"customer_id": f"C-{number}"})])


class StubModel:
    """The server; use it as a context manager."""

    def __init__(self, script: Script = healthy) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Without a path; OpenAI's clients want ``/v1`` behind it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StubModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Request) -> tuple[int, Reply]:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        return number, self.script(number, request)


def _handler_of(stub: StubModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self._body() or b"{}")
            path = self.path.split("?")[0]
            for end, (whole, streamed) in _DIALECTS.items():
                if end in path:
                    number, reply = stub.answer(Request(path, body))
                    if reply.status != 200:
                        self._send(reply.status, {"error": {"type": "overloaded", "message": "not now"}})
                    elif body.get("stream") or ":streamGenerateContent" in path:
                        self._send_events(streamed(number, reply, body))
                    else:
                        self._send(200, whole(number, reply, body))
                    return
            self._send(404, {"error": {"message": f"no such path: {path}"}})

        def do_GET(self) -> None:
            self._send(404, {"error": {"message": "nothing to get"}})

        def _body(self) -> bytes:
            if "chunked" not in (self.headers.get("transfer-encoding") or ""):
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            parts = []
            while size := int(self.rfile.readline().strip() or b"0", 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _send(self, status: int, answer: dict[str, Any]) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _send_events(self, events: Iterator[tuple[str, Any]]) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for name, data in events:
                text = data if isinstance(data, str) else json.dumps(data)
                self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Keep the tests' output quiet."""

    return Handler


# Chat Completions


def _chat_calls(number: int, reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (name, arguments) in enumerate(reply.calls)
    ]


def _chat_usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _chat(number: int, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = _chat_calls(number, reply)
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": body.get("model", ""),
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if reply.calls else "stop",
                "logprobs": None,
            }
        ],
        "usage": _chat_usage(reply),
    }


def _chat_stream(number: int, reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    def chunk(delta: dict[str, Any] | None, finish: str | None = None, usage: Any = None) -> tuple[str, Any]:
        return "", {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1_790_000_000,
            "model": body.get("model", ""),
            "choices": [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}],
            "usage": usage,
        }

    yield chunk({"role": "assistant", "content": None if reply.calls else ""})
    for call in _chat_calls(number, reply):
        arguments = call["function"]["arguments"]
        yield chunk({"tool_calls": [{**call, "function": {**call["function"], "arguments": ""}}]})
        for part in (arguments[:5], arguments[5:]):
            yield chunk({"tool_calls": [{"index": call["index"], "function": {"arguments": part}}]})
    for word in reply.text.split(" ") if reply.text else ():
        yield chunk({"content": word + " "})
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield chunk(None, usage=_chat_usage(reply))
    yield "", "[DONE]"


# Responses


def _response_items(number: int, reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{number}_{index}",
            "call_id": f"call_{number}_{index}",
            "name": name,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    if reply.text:
        items.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}],
            }
        )
    return items


def _response(number: int, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "model": body.get("model", ""),
        "output": _response_items(number, reply),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {
            "input_tokens": reply.input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": reply.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.input_tokens + reply.output_tokens,
        },
    }


def _response_stream(number: int, reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    whole = _response(number, reply, body)
    order = iter(range(1000))

    def event(kind: str, **data: Any) -> tuple[str, Any]:
        return kind, {"type": kind, "sequence_number": next(order), **data}

    yield event("response.created", response={**whole, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(whole["output"]):
        started = {**item, "status": "in_progress"}
        started.update({"arguments": ""} if item["type"] == "function_call" else {"content": []})
        yield event("response.output_item.added", output_index=index, item=started)
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "function_call":
            yield event("response.function_call_arguments.delta", delta=item["arguments"], **at)
            yield event("response.function_call_arguments.done", arguments=item["arguments"], name=item["name"], **at)
        else:
            part = item["content"][0]
            yield event("response.content_part.added", content_index=0, part={**part, "text": ""}, **at)
            yield event("response.output_text.delta", content_index=0, delta=part["text"], logprobs=[], **at)
            yield event("response.output_text.done", content_index=0, text=part["text"], logprobs=[], **at)
            yield event("response.content_part.done", content_index=0, part=part, **at)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole)


# Anthropic Messages


def _message_blocks(number: int, reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    return blocks + [
        {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": arguments}
        for index, (name, arguments) in enumerate(reply.calls)
    ]


def _message(number: int, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": _message_blocks(number, reply),
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.input_tokens,
            "output_tokens": reply.output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _message_stream(number: int, reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    whole = _message(number, reply, body)
    started = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": started}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": reply.output_tokens},
        },
    )
    yield "message_stop", {"type": "message_stop"}


# Gemini


def _gemini(number: int, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"id": f"call_{number}_{index}", "name": name, "args": arguments}}
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": reply.input_tokens,
            "candidatesTokenCount": reply.output_tokens,
            "totalTokenCount": reply.input_tokens + reply.output_tokens,
        },
        "modelVersion": "gemini-2.5-flash",
        "responseId": f"gemini-{number}",
    }


def _gemini_stream(number: int, reply: Reply, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "", _gemini(number, reply, body)


_DIALECTS: dict[str, tuple[Callable[..., dict[str, Any]], Callable[..., Iterator[tuple[str, Any]]]]] = {
    "/chat/completions": (_chat, _chat_stream),
    "/responses": (_response, _response_stream),
    "/v1/messages": (_message, _message_stream),
    "enerateContent": (_gemini, _gemini_stream),
}

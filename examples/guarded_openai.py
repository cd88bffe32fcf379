"""A complete agent loop on the OpenAI SDK, asynchronous, with every guard.

    pip install turnwatch openai
    export OPENAI_API_KEY=...
    python examples/guarded_openai.py "Where is order C-7841?"

The tool calls of one reply run side by side: the guards admit them one after another.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import openai

import turnwatch as tw

MODEL = "gpt-4o"
MAX_TOKENS = 1024

LIMITS = tw.Limits(max_iterations=10, max_tool_calls=12, max_seconds=60, max_usd=1.00, max_tokens=200_000)


async def search_orders(customer_id: str) -> list[dict[str, str]]:
    """A read: of two identical calls in one reply, one runs."""
    return [{"order": "C-7841", "customer": customer_id, "state": "shipped"}]


async def refund(order: str, cents: int) -> str:
    """A side effect: after a timeout it is not sent again without your word."""
    return f"refunded {cents} cents of {order}"


TOOLS: dict[str, Callable[..., Awaitable[Any]]] = {"search_orders": search_orders, "refund": refund}
SCHEMAS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "search_orders",
            "description": "Orders of a customer.",
            "parameters": {"type": "object", "properties": {"customer_id": {"type": "string"}}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "refund",
            "description": "Give money back.",
            "parameters": {
                "type": "object",
                "properties": {"order": {"type": "string"}, "cents": {"type": "integer"}},
            },
        },
    },
]


def make_gateway(tools: Mapping[str, Callable[..., Awaitable[Any]]] = TOOLS) -> tw.ToolGateway:
    """One for the whole process: a refund that timed out is still held when the user asks again in a new turn."""
    return tw.ToolGateway(
        impls=tools,
        overrides={"search_orders": {"read_only": True}, "refund": {"side_effect": True}},
    )


async def run_agent(
    client: openai.AsyncOpenAI,
    gateway: tw.ToolGateway,
    question: str,
    *,
    conversation_id: str | None = None,
    limits: tw.Limits = LIMITS,
    on_loop: Literal["observe", "nudge", "stop", "page"] = "nudge",
) -> str:
    """Answer a question.

    Raises:
        turnwatch.TurnStopped: A guard ended the turn; ``.stop_reason`` says why, ``.partial`` holds what was done.
    """
    messages: list[Any] = [{"role": "user", "content": question}]
    async with tw.turn(agent="support-bot", conversation_id=conversation_id, limits=limits, on_loop=on_loop) as turn:
        while True:
            # Held back until the reply says what it used. About four characters are a token; three is on the safe side.
            most = tw.Usage(input=len(str(messages)) // 3, output=MAX_TOKENS)
            with turn.model_call(MODEL, reserve=most) as call:
                reply = await client.chat.completions.create(
                    model=MODEL, max_completion_tokens=MAX_TOKENS, messages=messages, tools=SCHEMAS
                )
                call.usage(reply)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if message.content:
                turn.partial = message.content
            if not message.tool_calls:
                turn.answer = message.content
                return message.content or ""
            messages += await asyncio.gather(*(run_tool(gateway, asked) for asked in message.tool_calls))
            nudge = turn.take_nudge()
            if nudge is not None:
                messages.append({"role": "system", "content": nudge})


async def run_tool(gateway: tw.ToolGateway, asked: Any) -> dict[str, Any]:
    """A tool's result as the model gets it. What a tool raises is a result too; a guard's stop is not."""
    try:
        args = json.loads(asked.function.arguments or "{}")
        content = json.dumps(await gateway.acall(asked.function.name, args, call_id=asked.id))
    except tw.TurnStopped:
        raise
    except Exception as error:  # the model may try another way
        content = f"{type(error).__name__}: {error}"
    return {"role": "tool", "tool_call_id": asked.id, "content": content}


def main() -> None:
    """Answer the question on the command line."""
    question = " ".join(sys.argv[1:]) or "Where is order C-7841?"
    try:
        print(asyncio.run(run_agent(openai.AsyncOpenAI(), make_gateway(), question)))
    except tw.TurnStopped as stopped:
        print(f"stopped ({stopped.stop_reason}): {stopped}")
        print(f"so far: {stopped.partial}")


if __name__ == "__main__":
    main()

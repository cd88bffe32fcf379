"""A complete agent loop on the Anthropic SDK, with every guard.

    pip install turnwatch anthropic
    export ANTHROPIC_API_KEY=...
    python examples/guarded_anthropic.py "Where is order C-7841?"

The loop is yours: turnwatch is asked before each model call and runs each tool call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import anthropic

import turnwatch as tw

MODEL = "claude-sonnet-4-6"
MAX_TOKENS = 1024

LIMITS = tw.Limits(max_iterations=10, max_tool_calls=12, max_seconds=60, max_usd=1.00, max_tokens=200_000)
CONVERSATION_LIMITS = tw.Limits(max_usd=5.00, max_iterations=50)


def search_orders(customer_id: str) -> list[dict[str, str]]:
    """A read: an identical call within a minute gets the same rows again."""
    return [{"order": "C-7841", "customer": customer_id, "state": "shipped"}]


def refund(order: str, cents: int) -> str:
    """A side effect: after a timeout it is not sent again without your word."""
    return f"refunded {cents} cents of {order}"


TOOLS: dict[str, Callable[..., Any]] = {"search_orders": search_orders, "refund": refund}
SCHEMAS: list[Any] = [
    {
        "name": "search_orders",
        "description": "Orders of a customer.",
        "input_schema": {
            "type": "object",
            "properties": {"customer_id": {"type": "string"}},
            "required": ["customer_id"],
        },
    },
    {
        "name": "refund",
        "description": "Give money back.",
        "input_schema": {
            "type": "object",
            "properties": {"order": {"type": "string"}, "cents": {"type": "integer"}},
            "required": ["order", "cents"],
        },
    },
]


def make_gateway(tools: Mapping[str, Callable[..., Any]] = TOOLS) -> tw.ToolGateway:
    """One for the whole process: a refund that timed out is still held when the user asks again in a new turn."""
    return tw.ToolGateway(
        impls=tools,
        overrides={"search_orders": {"read_only": True}, "refund": {"side_effect": True}},
    )


def run_agent(
    client: anthropic.Anthropic,
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
    with tw.turn(
        agent="support-bot",
        conversation_id=conversation_id,
        limits=limits,
        conversation_limits=CONVERSATION_LIMITS,
        on_loop=on_loop,
    ) as turn:
        while True:
            # Held back until the reply says what it used. About four characters are a token; three is on the safe side.
            most = tw.Usage(input=len(str(messages)) // 3, output=MAX_TOKENS)
            with turn.model_call(MODEL, reserve=most) as call:
                reply = client.messages.create(model=MODEL, max_tokens=MAX_TOKENS, messages=messages, tools=SCHEMAS)
                call.usage(reply)
            messages.append({"role": "assistant", "content": reply.content})
            asked_for = [block for block in reply.content if block.type == "tool_use"]
            text = "".join(block.text for block in reply.content if block.type == "text")
            if text:
                turn.partial = text
            if not asked_for:
                turn.answer = text
                return text
            results: list[Any] = [
                {"type": "tool_result", "tool_use_id": block.id, **run_tool(gateway, block.name, block.input, block.id)}
                for block in asked_for
            ]
            nudge = turn.take_nudge()
            if nudge is not None:
                results.append({"type": "text", "text": nudge})
            messages.append({"role": "user", "content": results})


def run_tool(gateway: tw.ToolGateway, name: str, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """A tool's result as the model gets it. What a tool raises is a result too; a guard's stop is not."""
    try:
        return {"content": str(gateway.call(name, args, call_id=call_id))}
    except tw.TurnStopped:
        raise
    except Exception as error:  # the model may try another way
        return {"content": f"{type(error).__name__}: {error}", "is_error": True}


def main() -> None:
    """Answer the question on the command line."""
    question = " ".join(sys.argv[1:]) or "Where is order C-7841?"
    try:
        print(run_agent(anthropic.Anthropic(), make_gateway(), question))
    except tw.TurnStopped as stopped:
        print(f"stopped ({stopped.stop_reason}): {stopped}")
        print(f"so far: {stopped.partial}")


if __name__ == "__main__":
    main()

"""What LangChain's messages say of a call: its result, its usage, its words."""

from __future__ import annotations

from typing import Any

from turnwatch.sources.calls_in_progress import ToolCallInProgress


def tool_returned(running: ToolCallInProgress, output: Any) -> None:
    """Note what a tool returned: a ToolMessage, a Command with one, or anything.

    Raises:
        TurnStopped: The turn is stuck and its guard stops it here.
    """
    message = _tool_message(output, running.call.call_id)
    if message is None:
        running.returned(output)
    elif getattr(message, "status", "success") == "error":
        running.failed_saying(message.content)
    else:
        running.returned(message.content)


def _tool_message(output: Any, call_id: str | None) -> Any:
    """The message that answers this call; None where there is none."""
    if getattr(output, "type", None) == "tool":
        return output
    update = getattr(output, "update", None)
    messages = update.get("messages") if isinstance(update, dict) else None
    for message in messages if isinstance(messages, list) else ():
        if getattr(message, "type", None) == "tool" and message.tool_call_id == call_id:
            return message
    return None


def words_of(message: Any) -> str | None:
    """What a message says where it asks for no tool."""
    if message is None or getattr(message, "tool_calls", None):
        return None
    text = getattr(message, "text", None)
    return str(text) if isinstance(text, str) else None


def model_name(model: Any) -> str:
    """The name of a chat model object."""
    for name in ("model_name", "model", "model_id"):
        value = getattr(model, name, None)
        if isinstance(value, str) and value:
            return value.removeprefix("models/")
    return ""

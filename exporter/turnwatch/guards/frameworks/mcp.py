"""An MCP client session whose tool calls are watched and guarded. The MCP library is not imported."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from turnwatch.core.current_call import current_call
from turnwatch.core.default import default_watch
from turnwatch.core.events import ToolCall
from turnwatch.guards.frameworks.reported import ReportedTurn
from turnwatch.sources.hand import current_turn

S = TypeVar("S")

_WRAPPED = "_turnwatch_wrapped"


def wrap_session(session: S) -> S:
    """Watch and guard the tool calls of an MCP ``ClientSession`` (or ``Client``).

    ::

        session = wrap_session(session)
        async with turnwatch.turn(agent="support-bot", limits=Limits(max_tool_calls=12)):
            result = await session.call_tool("search_orders", {"customer_id": "C-7841"})

    Calls count in the turn that is current, and pass untouched where there is none, or where a framework's hook
    counts the call already. What ``list_tools`` says of a tool (read-only, destructive, idempotent) is taken into
    account when the turn is judged.

    Args:
        session: The session. It is changed in place.

    Returns:
        The same session.

    Raises:
        TypeError: It has no ``call_tool``.
    """
    if not callable(getattr(session, "call_tool", None)):
        raise TypeError("wrap_session takes an MCP client session")
    if getattr(session, _WRAPPED, False):
        return session
    changed: Any = session
    declared: dict[str, Any] = {}
    changed.call_tool = _watched(changed.call_tool, declared)
    if callable(getattr(session, "list_tools", None)):
        changed.list_tools = _remembered(changed.list_tools, declared)
    setattr(changed, _WRAPPED, True)
    return session


def _watched(inner: Any, declared: dict[str, Any]) -> Any:
    @functools.wraps(inner)
    async def call_tool(name: str, arguments: dict[str, Any] | None = None, *args: Any, **kwargs: Any) -> Any:
        call = current_call()
        if current_turn() is None or isinstance(call, ToolCall):
            return await inner(name, arguments, *args, **kwargs)
        turn = ReportedTurn()
        with turn.tool_call(name, arguments or {}) as running:
            _declare(running.call, declared.get(name))
            result = await inner(name, arguments, *args, **kwargs)
            said = _content(result)
            if _is_error(result):
                running.failed_saying(said)
            else:
                running.returned(said)
        return result

    return call_tool


def _remembered(inner: Any, declared: dict[str, Any]) -> Any:
    @functools.wraps(inner)
    async def list_tools(*args: Any, **kwargs: Any) -> Any:
        result = await inner(*args, **kwargs)
        try:
            for tool in result.tools:
                declared[tool.name] = getattr(tool, "annotations", None)
        except Exception:
            default_watch().internal_error("a list of tools")
        return result

    return list_tools


def _declare(call: ToolCall, annotations: Any) -> None:
    if annotations is None:
        return
    call.read_only = _hint(annotations, "read_only_hint", "readOnlyHint", call.read_only)
    call.destructive = _hint(annotations, "destructive_hint", "destructiveHint", call.destructive)
    call.idempotent = _hint(annotations, "idempotent_hint", "idempotentHint", call.idempotent)


def _hint(annotations: Any, name: str, old_name: str, known: bool | None) -> bool | None:
    """A hint under its name in release 2 of the library, or in release 1; what the settings say goes first."""
    if known is not None:
        return known
    hint = getattr(annotations, name, None)
    return getattr(annotations, old_name, None) if hint is None else hint


def _is_error(result: Any) -> bool:
    return bool(getattr(result, "is_error", False) or getattr(result, "isError", False))


def _content(result: Any) -> object:
    """What the tool said: its text where it is nothing else."""
    content = getattr(result, "content", None)
    if not isinstance(content, list):
        return result
    texts = [text for block in content if isinstance(text := getattr(block, "text", None), str)]
    return "\n".join(texts) if len(texts) == len(content) else content

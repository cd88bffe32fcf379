"""Items of OpenAI's Responses API, which Codex writes as well: messages, calls and their outputs side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from turnwatch.core.events import MISSING
from turnwatch.core.usage import read_usage
from turnwatch.sources.json_values import parse_json
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import Recording, plain_text

# Calls that the client answers with an item of their own.
_ARGUMENTS: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "computer_call": "action",
    "apply_patch_call": "operation",
}
# Calls that run at the provider: the item holds arguments and result, or nothing of either.
_HOSTED: Final = {
    "mcp_call": ("arguments", "output"),
    "web_search_call": ("action", "results"),
    "file_search_call": ("queries", "results"),
    "code_interpreter_call": ("code", "outputs"),
    "image_generation_call": ("prompt", "result"),
}
# What Codex says about a command before what the command printed. It differs from run to run.
_ABOUT: Final = re.compile(
    r"(?:(?:Chunk ID|Wall time|Exit code|Total output lines|Original token count): [^\n]*\n|Process [^\n]*\n)+Output:\n"
)
_EXIT_CODE: Final = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)$", re.MULTILINE)
_TOOL_FAILED: Final = re.compile(r"(?:exec_command|write_stdin|shell|shell_command|apply_patch) failed: ")


def claims_item(item: object) -> bool:
    """Whether something is surely an item of the Responses API, and no chat message."""
    if not isinstance(item, dict):
        return False
    kind = str(item.get("type"))
    if kind == "message":
        return "role" in item
    return kind in _ARGUMENTS or kind in _HOSTED or kind == "reasoning" or kind.endswith("_call_output")


def claims_response(response: dict[str, Any]) -> bool:
    """Whether a response is one of the Responses API."""
    return isinstance(response.get("output"), list) and (
        response.get("object") == "response" or any(claims_item(item) for item in response["output"])
    )


def add_item(recording: Recording, line: int, item: dict[str, Any], at: float | None) -> Iterator[RecordedTurn]:
    """Record one item. What the model says without an answer in between belongs to one reply."""
    kind, role = str(item.get("type") or "message"), item.get("role")
    if kind == "message" and role == "user":
        yield from recording.user(line)
    elif kind.endswith("_call_output"):
        recording.close_reply()
        _add_output(recording, item, at)
    elif kind in _ARGUMENTS or kind in _HOSTED or kind == "reasoning" or role == "assistant":
        if recording.awaits_reply:
            recording.reply(line, at=at)
        _add_said(recording, line, kind, item, at)


def add_response(recording: Recording, line: int, response: dict[str, Any], at: float | None) -> None:
    """Record the response to a request."""
    usage = response.get("usage")
    recording.reply(
        line,
        reply_id=response.get("id"),
        model=str(response.get("model") or ""),
        provider="openai",
        usage=read_usage(usage) if isinstance(usage, dict) else None,
        at=at,
        failed=response.get("status") == "failed",
    )
    for item in response.get("output") or ():
        if isinstance(item, dict):
            _add_said(recording, line, str(item.get("type")), item, at)


def _add_said(recording: Recording, line: int, kind: str, item: dict[str, Any], at: float | None) -> None:
    if kind == "message":
        text = plain_text(item.get("content"))
        if isinstance(text, str):
            recording.text(text)
        return
    call_id = str(item.get("call_id") or item.get("id") or "") or None
    if kind in _ARGUMENTS:
        tool = str(item.get("name") or kind.removesuffix("_call"))
        recording.call(line, tool, item.get(_ARGUMENTS[kind], MISSING), call_id=call_id, at=at)
    elif kind in _HOSTED:
        arguments, output = _HOSTED[kind]
        tool = str(item.get("name") or kind.removesuffix("_call"))
        recording.call(line, tool, item.get(arguments, MISSING), call_id=call_id, at=at)
        failed = bool(item.get("error")) or item.get("status") == "failed"
        result = item.get("error") or item.get(output)
        if result is not None or failed:
            recording.result(call_id, result, failed=failed, at=at)


def _add_output(recording: Recording, item: dict[str, Any], at: float | None) -> None:
    output = item.get("output")
    call_id = item.get("call_id")
    failed = item.get("status") in ("failed", "incomplete")
    # Codex wraps what a command printed in JSON, or puts lines about it in front.
    wrapped = _json_object(output)
    if wrapped is not None and isinstance(wrapped.get("metadata"), dict) and "output" in wrapped:
        output = wrapped["output"]
        failed = failed or bool(wrapped["metadata"].get("exit_code"))
    elif isinstance(output, dict) and isinstance(output.get("success"), bool):
        failed = failed or not output["success"]
        output = output.get("content")
    elif isinstance(output, str) and (about := _ABOUT.match(output)):
        code = _EXIT_CODE.search(about[0])
        failed = failed or (code is not None and code[1] != "0")
        output = output[about.end() :]
    elif isinstance(output, str):
        failed = failed or _TOOL_FAILED.match(output) is not None
    recording.result(str(call_id) if call_id else None, output, failed=failed, at=at)


def _json_object(text: object) -> dict[str, Any] | None:
    if isinstance(text, str) and text.startswith('{"output"'):
        try:
            value = parse_json(text)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None
    return None

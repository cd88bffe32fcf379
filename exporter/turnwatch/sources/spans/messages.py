"""What a model was told and what it asked for, out of the messages on its span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from turnwatch.sources.spans.arguments import unwrapped
from turnwatch.sources.spans.dialect import CONVENTIONS
from turnwatch.sources.spans.values import MISSING, json_of, parsed

_OPENINFERENCE_OUT: Final = "llm.output_messages."
# OpenInference gives each item of a reply of OpenAI's a number, and leaves out those it has no words for.
_MAX_LEFT_OUT: Final = 8
_FIRST_REPLY: Final = f"{_OPENINFERENCE_OUT}0.message.role"
_LATER_REPLIES: Final = tuple(f"{_OPENINFERENCE_OUT}{number}.message.role" for number in range(1, _MAX_LEFT_OUT))
_FIRST_CALL: Final = f"{_OPENINFERENCE_OUT}0.message.tool_calls.0.tool_call.function."
OPENINFERENCE_IN: Final = "llm.input_messages."
_REPLY_TEXTS: Final = (
    "llm.output_messages.0.message.content", "llm.output_messages.0.message.contents.0.message_content.text",
    "gen_ai.completion.0.content", "ai.response.text",
)  # fmt: skip
_TRACELOOP_OUT: Final = "gen_ai.completion."
TRACELOOP_IN: Final = "gen_ai.prompt."
# A role alone says nothing: some leave out of a reply that it asks for tools.
_NUMBERED_REPLY: Final = ("gen_ai.completion.0.content", "gen_ai.completion.0.tool_calls.0.name", "gen_ai.tool.call.id")
_OUTPUTS: Final = CONVENTIONS.messages["outputs"]
INPUTS: Final = CONVENTIONS.messages["inputs"]
_FINISH: Final = CONVENTIONS.messages["finish"]
_RENAMED: Final = tuple(zip(CONVENTIONS.messages["spread"], CONVENTIONS.messages["as_openinference"], strict=True))
_OF_PROVIDER: Final = CONVENTIONS.messages["of_provider"]
# Where the messages stand in the replies of OpenAI's Chat Completions and of Gemini.
_IN_CHOICES: Final = (("choices", "message"), ("candidates", "content"))
# Attributes that hold whole messages.
MESSAGES: Final = (*_OUTPUTS, *INPUTS)
# Replies with more tool calls than this are cut: the rest could not be told apart from an attack.
MAX_CALLS: Final = 256


@dataclass(slots=True)
class Asked:
    """One tool call in a model's reply."""

    tool: str
    arguments: Any
    call_id: str


T = TypeVar("T")


def as_openinference(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes over which messages are spread as OpenInference does, under its names."""
    renamed = dict(attributes)
    for start, name in _RENAMED:
        renamed |= {name + key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)}
    return renamed


def carries_reply(attributes: Mapping[str, Any]) -> bool:
    """Whether a model span carries the model's reply at all."""
    if not attributes:
        return False
    for name in _OUTPUTS:
        if attributes.get(name):
            return True
    return has_flat_reply(attributes) or any(name in attributes for name in _NUMBERED_REPLY)


def carries_request(attributes: Mapping[str, Any]) -> bool:
    """Whether a model span carries the messages that the model was given."""
    if not attributes:
        return False
    if any(attributes.get(name) for name in INPUTS):
        return True
    flat = next(numbered(attributes, OPENINFERENCE_IN, "message."), None)
    return (flat or next(numbered(attributes, TRACELOOP_IN), None)) is not None


def has_flat_reply(attributes: Mapping[str, Any]) -> bool:
    """Whether a model's reply stands in attributes of its own, as OpenInference has it."""
    return _FIRST_REPLY in attributes or not attributes.keys().isdisjoint(_LATER_REPLIES)


def leaves_out_arguments(attributes: Mapping[str, Any]) -> bool:
    """Whether OpenInference's reply asks for a call without arguments, which its tool's span will not have either."""
    return _FIRST_CALL + "name" in attributes and _FIRST_CALL + "arguments" not in attributes


def reply_text(attributes: Mapping[str, Any]) -> str:
    """The text of a model's reply, where it stands in an attribute of its own, or an empty one."""
    for name in _REPLY_TEXTS:
        text = attributes.get(name)
        if type(text) is str and text:
            return text
    return ""


def said_in(attributes: Mapping[str, Any]) -> str:
    """The text of a reply in which the model asked for no tool, or an empty one."""
    if wants_tools(attributes):
        return ""
    for name in _OUTPUTS:
        value = attributes.get(name)
        if value:
            messages = json_of(value)
            if messages is None:
                return str(value)
            return "" if any(asked_in(messages)) else "\n".join(_texts_in(messages))
    return "" if _asked_flat(attributes) else reply_text(attributes)


def wants_tools(attributes: Mapping[str, Any]) -> bool | None:
    """Whether the reply ended to have tools called, for which every dialect has a word; None: it does not say."""
    if not attributes:
        return None
    for name in _FINISH:
        value = attributes.get(name)
        if value is not None:
            text = str(value).lower()
            return "tool" in text or "function" in text
    return None


def asked_of(attributes: Mapping[str, Any]) -> list[Asked]:
    """The tool calls in a model's reply, in their order, without those that the provider made itself."""
    if not attributes:
        return []
    for name in _OUTPUTS:
        value = attributes.get(name)
        if value:
            calls = list(asked_in(json_of(value)))
            if calls:
                return _of_agent(calls)
    calls = _asked_flat(attributes)
    if any(call.arguments is MISSING for call in calls):  # OpenInference leaves out what is empty
        calls = list(asked_in(json_of(attributes.get("output.value")))) or calls
    return _of_agent(calls)


def _of_agent(calls: list[Asked]) -> list[Asked]:
    return [call for call in calls[:MAX_CALLS] if not call.call_id.startswith(_OF_PROVIDER)]


def question_in(attributes: Mapping[str, Any]) -> str:
    """What a model was last asked in words, or an empty text."""
    for name in INPUTS:
        value = attributes.get(name)
        if value:
            asked = [each for each in members(json_of(value), "messages") if each.get("role") == "user"]
            return "\n".join(_texts_in(asked[-1:]))
    text = ""
    flat = list(numbered(attributes, OPENINFERENCE_IN, "message.")) or numbered(attributes, TRACELOOP_IN)
    for message, role in flat:
        if role == "user":
            text = str(attributes.get(message + "content") or "")
    return text


def asked_before(attributes: Mapping[str, Any]) -> tuple[list[Asked], int]:
    """The tool calls of the latest reply among the messages that a model was given, and how many replies those have."""
    for name in INPUTS:
        value = attributes.get(name)
        if value:
            messages = members(json_of(value), "messages")
            replies = [message for message in messages if message.get("role") == "assistant"]
            return _of_agent(list(asked_in(replies[-1:]))), len(replies)
    calls: list[Asked] = []
    known = 0
    for start, inner, call in (
        (OPENINFERENCE_IN, "message.", "tool_calls.{}.tool_call.function."),
        (TRACELOOP_IN, "", "tool_calls.{}."),
    ):
        for message, role in numbered(attributes, start, inner):
            if role == "assistant":
                calls = _calls_at(attributes, message + call)
                known += 1
    return calls, known


def numbered(attributes: Mapping[str, Any], start: str, inner: str = "") -> Iterator[tuple[str, Any]]:
    """The messages that are spread over attributes, a number of which stands for each: where they stand, and roles.

    OpenInference keeps the first place for instructions, even where there are none, and one for what it leaves out.
    """
    number, left_out, most = 0, 0, _MAX_LEFT_OUT if inner else 2
    while left_out < most:
        role = attributes.get(f"{start}{number}.{inner}role")
        if role is None:
            left_out += 1
        else:
            left_out = 0
            yield f"{start}{number}.{inner}", role
        number += 1


def _calls_at(attributes: Mapping[str, Any], start: str) -> list[Asked]:
    """The tool calls of one message that are spread over attributes, a number of which stands for each."""
    calls: list[Asked] = []
    while len(calls) < MAX_CALLS:
        call = start.format(len(calls))
        tool = attributes.get(call + "name")
        if tool is None:
            break
        call_id = attributes.get(call.removesuffix("function.") + "id")
        calls.append(_asked(tool, attributes.get(call + "arguments"), call_id))
    return calls


def members(value: Any, *keys: str) -> Iterator[dict[str, Any]]:
    """The dictionaries in these lists of a dictionary, or in a list."""
    for found in map(value.get, keys) if isinstance(value, dict) else (value,):
        if isinstance(found, list):
            if len(found) == 1 and isinstance(found[0], list):
                found = found[0]  # LangChain's batches, of one prompt each
            yield from (member for member in found if isinstance(member, dict))


def asked_in(value: Any) -> Iterator[Asked]:
    """The tool calls in messages, in whichever form they are."""
    if isinstance(value, dict):
        value = _replies(value)
    for message in members(value):
        if message.get("type") == "function_call":  # OpenAI's Responses list them beside messages
            yield _asked(message.get("name"), message.get("arguments"), message.get("call_id"))
            continue
        if "toolCallId" in message or "toolName" in message:  # Vercel AI lists the calls themselves
            yield _asked(message.get("toolName"), message.get("input", message.get("args")), message.get("toolCallId"))
            continue
        for part in members(message, "parts", "content"):
            asked = _part(part)
            if asked is not None:
                yield asked
        for call in members(message, "tool_calls"):
            function = call.get("function")
            if isinstance(function, dict):
                yield _asked(function.get("name"), function.get("arguments"), call.get("id"))
            else:
                yield _asked(call.get("name"), call.get("args", call.get("arguments")), call.get("id"))


def _texts_in(value: Any) -> Iterator[str]:
    """The texts of messages, in whichever form they are; what the model thought before it spoke is none of them."""
    for message in members(_replies(value) if isinstance(value, dict) else value):
        for part in (message, *members(message, "parts", "content", "_content")):
            text = part.get("text", part.get("content"))
            if isinstance(text, str) and part.get("type", "text") in ("text", "output_text", "message"):
                yield text


def _replies(value: dict[str, Any]) -> list[Any]:
    """The messages of a reply, which may be a message itself or what a provider's API gave."""
    for key in ("replies", "output"):
        if isinstance(value.get(key), list):
            return list(value[key])
    for key, inner in _IN_CHOICES:
        if isinstance(value.get(key), list):
            return [choice.get(inner) for choice in value[key] if isinstance(choice, dict)]
    if isinstance(value.get("generations"), list):
        return list(_langchain(value["generations"]))
    return [value["message"] if isinstance(value.get("message"), dict) else value]


def _langchain(generations: list[Any]) -> Iterator[dict[str, Any]]:
    """The messages of a reply in LangChain's own form. Some content tells of the same calls once more."""
    for reply in members(generations[0] if generations else None):
        message = reply.get("message")
        about = message.get("kwargs", message) if isinstance(message, dict) else None
        if isinstance(about, dict):
            yield {"tool_calls": about.get("tool_calls")}


def _part(part: dict[str, Any]) -> Asked | None:
    kind = part.get("type")
    if kind in ("tool_call", "tool_use", "tool-call"):
        given = part.get("arguments", part.get("input", part.get("args")))
        return _asked(part.get("name", part.get("toolName")), given, part.get("id", part.get("toolCallId")))
    function = part.get("function_call", part.get("functionCall"))  # Gemini
    if isinstance(function, dict):
        return _asked(function.get("name"), function.get("args"), function.get("id"))
    call = part.get("tool_call")  # Haystack
    if isinstance(call, dict) and "tool_name" in call:
        return _asked(call["tool_name"], call.get("arguments"), call.get("id"))
    use = part.get("toolUse")  # Bedrock
    if isinstance(use, dict):
        return _asked(use.get("name"), use.get("input"), use.get("toolUseId"))
    return None


def _asked(tool: Any, given: Any, call_id: Any) -> Asked:
    arguments = MISSING if given is None else unwrapped(given)
    return Asked(str(tool or ""), arguments, "" if call_id is None else str(call_id))


def _asked_flat(attributes: Mapping[str, Any]) -> list[Asked]:
    calls: list[Asked] = []
    if _FIRST_CALL + "name" in attributes or has_flat_reply(attributes):
        number = left_out = 0
        while left_out < _MAX_LEFT_OUT:
            message = f"{_OPENINFERENCE_OUT}{number}.message."
            found = _calls_at(attributes, message + "tool_calls.{}.tool_call.function.")
            left_out = 0 if found or message + "role" in attributes else left_out + 1
            calls += found
            number += 1
    if calls:
        if calls[0].call_id:
            return calls
        return with_ids(calls, asked_in(json_of(attributes.get("output.value"))))
    calls = _calls_at(attributes, _TRACELOOP_OUT + "0.tool_calls.{}.")
    calls = calls or _calls_at(attributes, _TRACELOOP_OUT + "{}.function_call.")  # LiteLLM numbers calls, without ids
    return calls or _asked_joined(attributes)


def with_ids(found: list[T], sent: Iterator[T]) -> list[T]:
    """The same calls or results with the calls' ids, which messages as they were sent have and those on spans lack."""
    whole = list(sent)
    return whole if len(whole) == len(found) else found


def _asked_joined(attributes: Mapping[str, Any]) -> list[Asked]:
    """OpenLIT puts the calls of a reply on its chat span, joined by commas, and once had arguments in Python's form."""
    ids = attributes.get("gen_ai.tool.call.id")
    tools = attributes.get("gen_ai.tool.name")
    if type(ids) is not str or type(tools) is not str:
        return []
    names, numbers = tools.split(", "), ids.split(", ")
    given = parsed(f"[{attributes.get('gen_ai.tool.args') or attributes.get('gen_ai.tool.call.arguments') or ''}]")
    arguments = given if isinstance(given, list) and len(given) == len(names) else [None] * len(names)
    if len(numbers) != len(names):
        return []
    return [_asked(*call) for call in zip(names, arguments, numbers, strict=True)]

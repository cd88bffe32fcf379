"""The dialects that are known: what their declarations in ``dialects/*.toml`` say."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from turnwatch.sources.spans.span import SpanData

Role = Literal["agent", "container", "model", "tool", "mcp", "step", "pending"]
ROLES: Final = frozenset({"agent", "container", "model", "tool", "mcp", "step", "pending"})

_CONVENTIONS_FILE: Final = "conventions.toml"


class Patterns:
    """Texts that map to a role: whole, by their start (``x*``) or by their end (``*x``); ``*`` is any."""

    __slots__ = ("_any", "_ends", "_starts", "whole")

    def __init__(self, table: dict[str, Role]) -> None:
        unknown = set(table.values()) - ROLES
        if unknown:
            raise ValueError(f"unknown role {sorted(unknown)[0]!r}")
        self._any = table.get("*")
        self.whole = {text: role for text, role in table.items() if "*" not in text}
        self._starts = tuple((text[:-1], role) for text, role in table.items() if len(text) > 1 and text[-1] == "*")
        self._ends = tuple((text[1:], role) for text, role in table.items() if len(text) > 1 and text[0] == "*")

    def role_of(self, text: str) -> Role | None:
        """The role of this text, or None."""
        role = self.whole.get(text)
        if role is not None:
            return role
        for start, role in self._starts:
            if text.startswith(start):
                return role
        for end, role in self._ends:
            if text.endswith(end):
                return role
        return self._any


@dataclass(frozen=True, slots=True)
class Dialect:
    """One instrumentation's way of writing spans.

    Attributes:
        name: Its name in metrics and documents.
        scopes: The instrumentation scopes it writes under; a trailing ``*`` matches a prefix.
        markers: Attributes by which its spans are known under a scope that nobody declared.
        switch: How its users put arguments on spans, for people. Empty: nothing puts them there.
        names: Roles by span name, asked before the conventions.
        is_first_hand: The library that makes the calls writes these spans; what others count beside it is second hand.
        told_again: Calls that are traces of their own may be told of in another trace as well, by a framework's span.
        sums_leave_out_sub_agents: The tokens on an agent's span are those of its own model calls alone.
        cache_beside_input: Cached tokens are not among the input tokens, as they are by the conventions.
        thoughts_beside_output: Thinking tokens are not among the output tokens, as they are by the conventions.
        tool_calls: "spans" where every tool call has a span; "either" where some stand in the model's replies only;
            "never" where it tells of no call at all, so that a turn without other spans cannot be judged.
        agent_per_step: Agent spans stand for steps of one turn as well, so the outermost is the turn.
        step_tools: Tools by which the framework moves or ends a turn; not calls of the agent's own tools.
        agent_in_span_name: An agent's span is called after the agent and says so in an attribute only at its end.
        agent_name_in: The attribute that names the agent on its own span, where it names other things elsewhere.
        agent_named_by_span: Nothing but its span's name names an agent.
        agent_names: Agents by the names of their spans, where those are no names for people.
        wrong_agent_names: Agent names that the dialect puts on every span.
        tool_name_in_result: The tool's name stands in the result only.
        arguments_in_logs: Arguments come as log events, by the call's id.
        conversation_in: The attribute that names the conversation, where the usual one names something else.
        tool_name_in, arguments_in, result_in: Attributes of a tool call that say something else elsewhere.
        streams_apart: A reply that is streamed has a span of its own, at its end, and its request's says nothing of it.
        sub_agent_in: The attribute that names a sub-agent on the span of the tool call that runs it.
        of_sub_agent: The attribute that spans have which belong to a sub-agent.
    """

    name: str
    scopes: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    switch: str = ""
    names: Patterns | None = None
    is_first_hand: bool = False
    told_again: bool = False
    sums_leave_out_sub_agents: bool = False
    cache_beside_input: bool = False
    thoughts_beside_output: bool = False
    tool_calls: Literal["spans", "either", "never"] = "either"
    agent_per_step: bool = False
    step_tools: frozenset[str] = frozenset()
    agent_in_span_name: bool = False
    agent_name_in: str = ""
    agent_named_by_span: bool = False
    agent_names: Mapping[str, str] = field(default_factory=dict)
    wrong_agent_names: frozenset[str] = frozenset()
    tool_name_in_result: bool = False
    arguments_in_logs: bool = False
    conversation_in: str = ""
    tool_name_in: str = ""
    arguments_in: str = ""
    result_in: str = ""
    streams_apart: bool = False
    sub_agent_in: str = ""
    of_sub_agent: str = ""


@dataclass(frozen=True, slots=True)
class Conventions:
    """What holds for every dialect."""

    roles: tuple[tuple[str, Patterns], ...]
    names: dict[str, Role]
    tool: dict[str, Any]
    model: dict[str, tuple[str, ...]]
    agent: dict[str, tuple[str, ...]]
    usage: dict[str, tuple[str, ...]]
    messages: dict[str, tuple[str, ...]]
    redacted_anywhere: tuple[str, ...]
    redacted_whole: frozenset[str]
    unrelated_scopes: tuple[str, ...]

    @property
    def step_tools(self) -> frozenset[str]:
        """See Dialect."""
        return frozenset(self.tool["step_tools"])

    @property
    def markers(self) -> frozenset[str]:
        """Attributes of which a span has at least one if it is of any interest."""
        return frozenset(attribute for attribute, _ in self.roles) | {
            "gen_ai.tool.name",
            "gen_ai.request.model",
            "turnwatch.counted",
        }


def _parsed(file: Any) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file.name}: {error}") from error


def _conventions(data: dict[str, Any]) -> Conventions:
    def lists(section: str) -> dict[str, tuple[str, ...]]:
        return {key: tuple(value) for key, value in data[section].items()}

    return Conventions(
        roles=tuple((rule["attribute"], Patterns(rule["values"])) for rule in data["role"]),
        names=data["names"],
        tool={
            key: tuple(tuple(item) if isinstance(item, list) else item for item in value)
            for key, value in data["tool"].items()
        },
        model=lists("model"),
        agent=lists("agent"),
        usage=lists("usage"),
        messages=lists("messages"),
        redacted_anywhere=tuple(data["redacted"]["anywhere"]),
        redacted_whole=frozenset(data["redacted"]["whole"]),
        unrelated_scopes=tuple(data["unrelated"]["scopes"]),
    )


def _declared(data: dict[str, Any], step_tools: frozenset[str]) -> Dialect:
    known = {
        "name", "scopes", "markers", "switch", "names", "is_first_hand", "told_again", "tool_calls", "agent_per_step",
        "agent_in_span_name", "agent_name_in", "agent_named_by_span", "agent_names", "step_tools", "wrong_agent_names",
        "tool_name_in_result", "arguments_in_logs", "conversation_in", "sub_agent_in", "of_sub_agent",
        "cache_beside_input", "tool_name_in", "arguments_in", "result_in", "streams_apart", "sums_leave_out_sub_agents",
        "thoughts_beside_output",
    }  # fmt: skip
    unknown = set(data) - known
    if unknown:
        raise ValueError(f"dialect {data.get('name')!r}: unknown key {sorted(unknown)[0]!r}")
    return Dialect(
        name=data["name"],
        scopes=tuple(data.get("scopes", ())),
        markers=tuple(data.get("markers", ())),
        switch=data.get("switch", ""),
        names=Patterns(data["names"]) if data.get("names") else None,
        is_first_hand=data.get("is_first_hand", False),
        told_again=data.get("told_again", False),
        sums_leave_out_sub_agents=data.get("sums_leave_out_sub_agents", False),
        cache_beside_input=data.get("cache_beside_input", False),
        thoughts_beside_output=data.get("thoughts_beside_output", False),
        tool_calls=data.get("tool_calls", "either"),
        agent_per_step=data.get("agent_per_step", False),
        agent_in_span_name=data.get("agent_in_span_name", False),
        agent_name_in=data.get("agent_name_in", ""),
        agent_named_by_span=data.get("agent_named_by_span", False),
        agent_names=dict(data.get("agent_names", {})),
        step_tools=step_tools | frozenset(data.get("step_tools", ())),
        wrong_agent_names=frozenset(data.get("wrong_agent_names", ())),
        tool_name_in_result=data.get("tool_name_in_result", False),
        arguments_in_logs=data.get("arguments_in_logs", False),
        conversation_in=data.get("conversation_in", ""),
        tool_name_in=data.get("tool_name_in", ""),
        arguments_in=data.get("arguments_in", ""),
        result_in=data.get("result_in", ""),
        streams_apart=data.get("streams_apart", False),
        sub_agent_in=data.get("sub_agent_in", ""),
        of_sub_agent=data.get("of_sub_agent", ""),
    )


def _load() -> tuple[Conventions, tuple[Dialect, ...]]:
    folder = resources.files(__package__) / "dialects"
    files = {file.name: _parsed(file) for file in folder.iterdir() if file.name.endswith(".toml")}
    if _CONVENTIONS_FILE not in files:
        raise ValueError(f"{_CONVENTIONS_FILE} is missing")
    conventions = _conventions(files.pop(_CONVENTIONS_FILE))
    entries = (entry for name in sorted(files) for entry in files[name]["dialect"])
    return conventions, tuple(_declared(entry, conventions.step_tools) for entry in entries)


CONVENTIONS, DIALECTS = _load()

BY_NAME: Final[dict[str, Dialect]] = {dialect.name: dialect for dialect in DIALECTS}
_BY_SCOPE: Final[dict[str, Dialect]] = {
    scope: dialect for dialect in DIALECTS for scope in dialect.scopes if not scope.endswith("*")
}
_BY_SCOPE_START: Final = tuple(
    (scope[:-1], dialect) for dialect in DIALECTS for scope in dialect.scopes if scope.endswith("*")
)
_UNRELATED: Final = frozenset(scope for scope in CONVENTIONS.unrelated_scopes if not scope.endswith("*"))
_UNRELATED_STARTS: Final = tuple(scope[:-1] for scope in CONVENTIONS.unrelated_scopes if scope.endswith("*"))
_BY_MARKER: Final = tuple((marker, dialect) for dialect in DIALECTS for marker in dialect.markers)
_OTHER: Final = Dialect(name="genai", step_tools=CONVENTIONS.step_tools)


@functools.lru_cache(maxsize=4096)
def dialect_of_scope(scope: str) -> Dialect | None:
    """The dialect declared for an instrumentation scope, or None."""
    dialect = _BY_SCOPE.get(scope)
    if dialect is not None:
        return dialect
    for start, candidate in _BY_SCOPE_START:
        if scope.startswith(start):
            return candidate
    return None


@functools.lru_cache(maxsize=4096)
def is_unrelated_scope(scope: str) -> bool:
    """Whether nothing that this scope writes is of interest."""
    return scope in _UNRELATED or scope.startswith(_UNRELATED_STARTS)


@functools.lru_cache(maxsize=4096)
def standing_of(scope: str) -> Literal["known", "unrelated"] | None:
    """Whether all that a scope writes is in a dialect, or nothing of it of interest; None where spans must tell."""
    if is_unrelated_scope(scope):
        return "unrelated"
    return None if dialect_of_scope(scope) is None else "known"


def dialect_of(span: SpanData) -> Dialect:
    """The dialect a span is written in; one of the conventions' own when nobody declared its scope."""
    return span.shape.dialect


def dialect_without_scope(attributes: Container[str]) -> Dialect:
    """The dialect or convention that a span follows whose scope nobody declared."""
    for marker, candidate in _BY_MARKER:
        if marker in attributes:
            return candidate
    return _OTHER

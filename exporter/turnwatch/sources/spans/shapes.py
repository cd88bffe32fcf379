"""What spans of one look can say, worked out once for all of them.

A fact stands under a dozen names over the dialects, in the order in which they are asked. The spans of one
instrumentation carry the same few attributes again and again, so which dialect they are in and which of those names are
there is kept by scope and attribute names; of each span only the values are then read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from turnwatch.sources.spans.dialect import (
    CONVENTIONS,
    DIALECTS,
    Dialect,
    dialect_of_scope,
    dialect_without_scope,
    is_unrelated_scope,
)

# The oldest are not worth keeping apart: past this many all are forgotten, and those in use come back at once.
_MAX_SHAPES: Final = 2048
_TOOL: Final = CONVENTIONS.tool
_MODEL: Final = CONVENTIONS.model
_AGENT: Final = CONVENTIONS.agent
_USAGE: Final = CONVENTIONS.usage
_MESSAGES: Final = frozenset(
    name for kind in ("outputs", "inputs", "finish", "numbered") for name in CONVENTIONS.messages[kind]
)
# Where messages are spread under names that begin otherwise than OpenInference's, the first one's role.
_SPREAD: Final = frozenset(start + "0.message.role" for start in CONVENTIONS.messages["spread"])
COUNTED: Final = "turnwatch.counted"
COUNTED_MODEL: Final = "turnwatch.counted.model"
COUNTED_TOOL: Final = "turnwatch.counted.tool"
METADATA: Final = "metadata"
# Objects of a dialect's own in which token counts stand.
USAGE_OBJECTS: Final = (
    "langfuse.observation.usage_details", "langsmith.metadata.usage_metadata", "haystack.agent.step.llm.output",
    "haystack.component.output", "genkit:output", "gcp.vertex.agent.llm_response", "input_tokens", "output.value",
    "metadata.usage_object", "mlflow.chat.tokenUsage", "usage",
)  # fmt: skip


@final
class Shape:
    """What spans of this scope with these attributes can say.

    The tuples hold, in the order in which they are to be asked, the names under which a fact stands.

    Attributes:
        dialect: The dialect the spans are written in.
        is_unrelated: Nothing that their scope writes is of interest.
        is_of_interest: They can play a part, whatever they are called.
        roles: What tells their part by the value of an attribute.
        tool_name, arguments, result, call_id, input_hash, failed_when: Of a tool call.
        kept_of_tool: What of a tool call is kept while it waits.
        model_name, provider, response_id, first_token: Of a model call.
        agent_name, conversation: Of an agent.
        is_of_sub_agent: They belong to a sub-agent, which may have no span of its own.
        may_name_agent: An agent is named, perhaps in the metadata.
        of_graph, of_node: Where in LangGraph it ran.
        input, output, cache_read, cache_write, reasoning, total: Token counts.
        has_usage_object: Token counts may stand in an object of the dialect's own.
        has_messages: A model's messages, or why it ended, are among the attributes.
        spreads_messages: Those are under other names than OpenInference's (see messages.as_openinference).
        may_be_counted: Somebody may have marked the spans as counted already.
    """

    __slots__ = (
        "agent_name",
        "arguments",
        "cache_read",
        "cache_write",
        "call_id",
        "conversation",
        "dialect",
        "failed_when",
        "first_token",
        "has_messages",
        "has_usage_object",
        "input",
        "input_hash",
        "is_of_interest",
        "is_of_sub_agent",
        "is_unrelated",
        "kept_of_tool",
        "may_be_counted",
        "may_name_agent",
        "model_name",
        "of_graph",
        "of_node",
        "output",
        "provider",
        "reasoning",
        "response_id",
        "result",
        "roles",
        "spreads_messages",
        "tool_name",
        "total",
    )

    def __init__(self, scope: str, names: frozenset[str]) -> None:
        def there(candidates: Iterable[str]) -> tuple[str, ...]:
            return tuple(name for name in candidates if name in names)

        known = dialect_of_scope(scope)
        self.dialect: Dialect = known or dialect_without_scope(names)
        self.is_unrelated = is_unrelated_scope(scope)
        self.is_of_interest = not self.is_unrelated and (known is not None or not CONVENTIONS.markers.isdisjoint(names))
        self.roles = tuple(rule for rule in CONVENTIONS.roles if rule[0] in names)
        own = self.dialect
        self.tool_name = there((own.tool_name_in, *_TOOL["name"]))
        self.arguments = there((own.arguments_in, *_TOOL["arguments"]))
        self.result = there((own.result_in, *_TOOL["result"]))
        self.kept_of_tool = self.arguments + self.result
        self.call_id = there(_TOOL["call_id"])
        self.input_hash = there(_TOOL["input_hash"])
        self.failed_when = tuple(rule for rule in _TOOL["failed_when"] if rule[0] in names)
        self.model_name = there(_MODEL["name"])
        self.provider = there(_MODEL["provider"])
        self.response_id = there(_MODEL["response_id"])
        self.first_token = there(_MODEL["first_token"])
        self.agent_name = there(_AGENT["name"])
        self.may_name_agent = bool(self.agent_name) or METADATA in names
        self.of_graph = there(_AGENT["of_graph"])
        self.of_node = there(_AGENT["of_node"])
        self.conversation = there((own.conversation_in, *_AGENT["conversation"]))
        self.is_of_sub_agent = own.of_sub_agent in names
        self.input = there(_USAGE["input"])
        self.output = there(_USAGE["output"])
        self.cache_read = there(_USAGE["cache_read"])
        self.cache_write = there(_USAGE["cache_write"])
        self.reasoning = there(_USAGE["reasoning"])
        self.total = there(_USAGE["total"])
        self.has_usage_object = any(name in names for name in USAGE_OBJECTS)
        self.spreads_messages = not _SPREAD.isdisjoint(names)
        self.has_messages = self.spreads_messages or not _MESSAGES.isdisjoint(names)
        self.may_be_counted = COUNTED in names or COUNTED_MODEL in names or COUNTED_TOOL in names


def _asked_for() -> frozenset[str]:
    """Every attribute name that a shape depends on."""
    names = {COUNTED, COUNTED_MODEL, COUNTED_TOOL, METADATA, *USAGE_OBJECTS, *CONVENTIONS.markers, *_MESSAGES, *_SPREAD}
    for section in (_MODEL, _AGENT, _USAGE):
        names.update(*section.values())
    for kind in ("name", "arguments", "result", "call_id", "input_hash"):
        names.update(_TOOL[kind])
    names.update(name for name, _ in _TOOL["failed_when"])
    for own in DIALECTS:
        names.update((own.conversation_in, own.of_sub_agent, own.tool_name_in, own.arguments_in, own.result_in))
    names.update(marker for dialect in DIALECTS for marker in dialect.markers)
    return frozenset(names - {""})


_asked_among: Final = _asked_for().intersection
_shapes: Final[dict[tuple[str, frozenset[str]], Shape]] = {}


def shape_of(scope: str, attributes: Iterable[str]) -> Shape:
    """The shape of a span of this scope with attributes of these names."""
    key = (scope, _asked_among(attributes))
    shape = _shapes.get(key)
    if shape is None:
        if len(_shapes) >= _MAX_SHAPES:
            _shapes.clear()
        shape = _shapes[key] = Shape(*key)
    return shape

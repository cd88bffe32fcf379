"""What a span tells of the agent whose turn it belongs to."""

from __future__ import annotations

from typing import Final

from turnwatch.sources.spans.dialect import Dialect
from turnwatch.sources.spans.facts import ToolFact, agent_name, conversation_of, service_name
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.stops import stop_reason_of
from turnwatch.sources.spans.usage import usage_of_agent
from turnwatch.sources.spans.values import first_text, shortened

# A workflow has agents, so that its name is an agent's only where nothing else is.
_WORKFLOW: Final = "gen_ai.workflow.name"


def give_hints(scope: Scope, span: SpanData, dialect: Dialect) -> None:
    """Note what a call's or step's span says of the agent above it, as long as nobody knows better."""
    if scope.turn is not None:
        return
    shape = span.shape
    if shape.may_name_agent and not scope.agent:
        scope.agent = agent_name(span, dialect)
    if shape.conversation and scope.conversation is None:
        scope.conversation = conversation_of(span)
    if not scope.service:
        scope.service = service_name(span)
    if shape.is_of_sub_agent:
        scope.saw_agent = True


def about_agent(scope: Scope, span: SpanData, dialect: Dialect) -> None:
    """Note what an agent's own span says."""
    scope.agent_dialect = scope.agent_dialect or dialect
    scope.conversation = scope.conversation or conversation_of(span)
    scope.service = scope.service or service_name(span)
    if scope.agent_usage is None and not dialect.agent_per_step:  # a step's sum is not the turn's
        scope.agent_usage = usage_of_agent(span)
        scope.model_name = scope.model_name or first_text(span.attributes, span.shape.model_name)
    scope.stop_reason = stop_reason_of(span)


def about_root(scope: Scope, span: SpanData, dialect: Dialect | None) -> None:
    """Note what the outermost span says of a turn that no agent's span bounds."""
    if dialect is not None and not scope.agent:
        scope.agent = agent_name(span, dialect) or shortened(str(span.attributes.get(_WORKFLOW) or ""))
    scope.stop_reason = scope.stop_reason or stop_reason_of(span)


def called_agent(span: SpanData, fact: ToolFact) -> str:
    """What to call a sub-agent that this tool call runs and that nothing else names."""
    return shortened(str(span.attributes.get(fact.dialect.sub_agent_in) or "")) or fact.call.tool


def is_another(agent: str, caller: str) -> bool:
    """Whether calls inside a tool call are a sub-agent's of which no span tells: they name another agent than it does.

    Calls that name the same agent, or none, are the tool's own.
    """
    return bool(agent) and bool(caller) and agent != caller


def own_name(span: SpanData, dialect: Dialect) -> str:
    """The name that an agent's own span gives it, unless it is a graph's, or an empty text."""
    name = agent_name(span, dialect) or shortened(str(span.attributes.get(dialect.agent_name_in) or ""))
    return spoken_name(span.name, dialect) if not name and dialect.agent_named_by_span else name


def spoken_name(name: str, dialect: Dialect) -> str:
    """What to call an agent after its span, where nothing else names the agent."""
    if name in dialect.agent_names:
        return dialect.agent_names[name]
    name = shortened(name)
    for start in ("invoke_agent ", "invoke_workflow "):
        name = name.removeprefix(start)
    for end in (".run", "._execute_core", ".kickoff", ".workflow", ".agent"):
        name = name.removesuffix(end)
    return name

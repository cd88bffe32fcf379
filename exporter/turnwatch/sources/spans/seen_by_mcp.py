"""Which calls did MCP see? What its client and its server tell of may be one call."""

from __future__ import annotations

from turnwatch.sources.spans.facts import ToolFact, is_same_tool_name


def calls_of(facts: list[ToolFact]) -> list[ToolFact]:
    """The calls that MCP saw: what a server saw during a client's call is that one, though the span between is lost."""
    calls = [fact for fact in facts if fact.awaits is not False]
    for fact in facts:
        if fact.awaits is False:
            client = next((call for call in calls if call.awaits and _is_round(call, fact)), None)
            if client is None:
                calls.append(fact)
            else:
                client.hear(fact)
    return sorted(calls, key=lambda call: call.start_ns)


def _is_round(outer: ToolFact, inner: ToolFact) -> bool:
    is_same = is_same_tool_name(outer.call.tool, inner.call.tool)
    return is_same and outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns

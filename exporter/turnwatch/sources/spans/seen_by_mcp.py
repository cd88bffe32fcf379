"""Which calls did MCP see? What its client and its server tell of may be one call."""

from __future__ import annotations

from bisect import bisect_left, insort

from turnwatch.sources.spans.facts import ToolFact, is_same_tool_name


def calls_of(facts: list[ToolFact]) -> list[ToolFact]:
    """The calls that MCP saw: what a server saw during a client's call is that one, though the span between is lost.

    A client hears one server. Of several whose calls run side by side, it is the one that ends first after the server:
    the others may be those of servers that took longer.
    """
    calls: list[ToolFact] = []
    unheard: list[ToolFact] = []  # clients that began already, by their end
    for fact in sorted(facts, key=_by_start):
        if fact.is_servers:
            client = _take_client_round(fact, unheard)
            if client is not None:
                client.hear(fact)
                continue
        elif fact.awaits:
            insort(unheard, fact, key=_by_end)
        calls.append(fact)
    return calls


def _by_start(fact: ToolFact) -> tuple[int, bool]:
    return fact.start_ns, fact.is_servers


def _by_end(fact: ToolFact) -> int:
    return fact.end_ns


def _take_client_round(server: ToolFact, unheard: list[ToolFact]) -> ToolFact | None:
    for number in range(bisect_left(unheard, server.end_ns, key=_by_end), len(unheard)):
        if is_same_tool_name(unheard[number].call.tool, server.call.tool):
            return unheard.pop(number)
    return None

"""Which rows the text of the filter leaves."""

from __future__ import annotations

from turnwatch.top.journal import Event
from turnwatch.top.rows import AgentRow, ToolRow


def matches(text: str, row: AgentRow | ToolRow | Event) -> bool:
    """Whether a row holds the text in one of its names, capitals or not."""
    if not text:
        return True
    wanted = text.casefold()
    return any(wanted in name.casefold() for name in _names(row))


def _names(row: AgentRow | ToolRow | Event) -> tuple[str, ...]:
    if isinstance(row, AgentRow):
        return row.agent, row.worst_tool, row.state
    if isinstance(row, ToolRow):
        return row.agent, row.tool
    return row.agent, row.tool, row.text, row.sort

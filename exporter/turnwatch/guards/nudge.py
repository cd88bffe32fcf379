"""What to tell a model that is stuck."""

from __future__ import annotations

from typing import Final

from turnwatch.core.verdict import Kind, Verdict

_WHAT_HAPPENED: Final[dict[Kind, str]] = {
    "repeat": "You keep making the same call of {tool}, {times} times by now, with the same arguments.",
    "window": "You keep making the same call of {tool}, {times} times by now, with the same arguments.",
    "stale_repeat": "You have made the same call of {tool} {times} times, and its result is the same each time.",
    "cycle": "You are going round in a circle: the same calls, {tool} among them, with the same results as before.",
    "error_stall": "Your calls of {tool} keep failing in the same way, {times} of them by now.",
    "empty_results": "Your calls of {tool} keep finding nothing, {times} of them by now.",
    "unknown_tool": "You keep calling a tool that does not exist. Only the tools you were given can be called.",
    "monologue": "You have given the same answer several times without doing anything new.",
}
_WHAT_TO_DO: Final = (
    "Doing it again will not help. Try something else: another tool, other arguments, another way to the goal. "
    "If nothing else is left, stop here and report what you have found and what is missing."
)
_MAX_TOOL_NAME: Final = 80


def nudge_text(verdict: Verdict) -> str:
    """A system message about a stuck verdict: what was repeated and what to do instead, no arguments or results."""
    tool = "".join(letter for letter in verdict.tool if letter.isprintable())[:_MAX_TOOL_NAME] or "a tool"
    happened = _WHAT_HAPPENED.get(verdict.kind, "You are repeating yourself without getting further.")
    return f"{happened.format(tool=tool, times=max(2, len(verdict.calls)))} {_WHAT_TO_DO}"

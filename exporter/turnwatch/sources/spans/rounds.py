"""Which reply asked for a tool call? Calls of one reply are one round."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from turnwatch.sources.spans.facts import ModelFact, ToolFact
from turnwatch.sources.spans.scope import Scope
from turnwatch.sources.spans.span import MILLISECOND_NS

# How many model calls are looked through for the one that asked for a tool call.
_MODEL_STARTS: Final = 64


def round_of(scope: Scope, fact: ToolFact, iterations: int) -> int | None:
    """The number of a call's round: that of the model call, or one below 0 where no model span shows it.

    Args:
        scope: Where the call counts.
        fact: The call.
        iterations: The model calls counted so far.

    Returns:
        None for the latest model call's.
    """
    if not iterations or _lies_in_latest(scope, fact):
        # Calls that overlap are taken for calls of one reply.
        if fact.start_ns >= scope.round_end_ns:
            scope.round -= 1
        scope.round_end_ns = max(scope.round_end_ns, fact.end_ns)
        return scope.round
    if scope.model_starts:
        # The call may have waited for its log event while later model calls were counted.
        later = len(scope.model_starts) - bisect_right(scope.model_starts, fact.start_ns)
        return max(iterations - later, 1)
    return None


def note_start(scope: Scope, fact: ModelFact) -> None:
    """Remember when a model call began whose tool calls may wait for log events."""
    scope.model_starts = sorted((*(scope.model_starts or ()), fact.start_ns))[-_MODEL_STARTS:]


def _lies_in_latest(scope: Scope, fact: ToolFact) -> bool:
    """Whether the latest model span lasts beyond a call: it stands for more than the reply that asked for it.

    OpenInference for Google ADK writes the model's call on its agent's span.
    """
    latest = scope.recent_models[-1] if scope.recent_models else None
    return latest is not None and latest.start_ns <= fact.start_ns and fact.end_ns + MILLISECOND_NS < latest.end_ns

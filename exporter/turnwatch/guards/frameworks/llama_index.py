"""LlamaIndex: whose tool runs here? Its agents ask their models through clients that ``turnwatch.wrap`` has wrapped."""

from __future__ import annotations

import functools
import inspect
from typing import Any, final

from turnwatch.core.default import default_watch
from turnwatch.core.quietly import Quietly
from turnwatch.errors import MissingExtraError
from turnwatch.guards.frameworks.client_turns import turn_that_asked

try:
    from llama_index.core.agent.workflow import ToolCall
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.span import BaseSpan
    from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.llama_index", "llama-index") from None


@functools.cache
def follow_tools() -> None:
    """Have the runs of agents that are started by a tool pay from the budget of the agent that asked for it.

    ::

        client = turnwatch.wrap(AsyncOpenAI(), agent="boss", limits=Limits(max_usd=1.0))
        follow_tools()

    Each is a turn below that of the agent whose tool it runs in, where both ask their models through wrapped clients.
    Once for a process: it adds a handler to LlamaIndex's instrumentation, which is told of a step where it runs.
    """
    get_dispatcher().add_span_handler(_Tools())


@final
class _Tools(BaseSpanHandler[BaseSpan]):
    """Keeps no spans: looks at the beginning of steps that run a tool, each of which is a task of its own."""

    def span_enter(self, id_: str, bound_args: inspect.BoundArguments, *args: Any, **kwargs: Any) -> None:
        for argument in bound_args.arguments.values():
            if type(argument) is ToolCall:
                with Quietly(default_watch(), "whose tool runs"):
                    turn = turn_that_asked(argument.tool_id)
                    if turn is not None:
                        turn.tool_runs_from_here()

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """No span."""

    prepare_to_exit_span = prepare_to_drop_span = new_span

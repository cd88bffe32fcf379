"""Pydantic AI: a capability that watches and guards an agent's runs."""

from __future__ import annotations

import dataclasses
from typing import Any, Unpack

from turnwatch.core.guard import Guarding
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError
from turnwatch.guards.frameworks.reported import Replies, ReportedTurn, TurnOpener

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelRequest, SystemPromptPart
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.pydantic_ai", "pydantic-ai") from None


class TurnCapability(AbstractCapability[Any]):
    """Watches and guards each run of an agent as one turn.

    ::

        agent = Agent("openai:gpt-5-mini", capabilities=[TurnCapability(on_loop="nudge", limits=Limits(max_usd=1.0))])

    A stop is a ``TurnStopped`` out of ``run``, ``run_stream`` or ``iter``. A nudge is the last message of the model's
    next request, and not in the run's history.

    Args:
        agent: The agent's name; its own when left out.
        conversation_id: Its conversation; the one that the run was given when left out.
        watch: Where it counts; the process's own watch when left out.
        **guarding: What stops the turn; see ``turnwatch.turn``.
    """

    def __init__(
        self,
        agent: str = "",
        conversation_id: str | None = None,
        *,
        watch: Watch | None = None,
        **guarding: Unpack[Guarding],
    ) -> None:
        super().__init__()
        self._opener = TurnOpener(agent, conversation_id, watch, guarding)

    async def for_run(self, ctx: Any) -> AbstractCapability[Any]:
        """The instance for one run."""
        return _Run(self._opener)


class _Run(AbstractCapability[Any]):
    """One run: its turn is open while ``wrap_run`` waits."""

    def __init__(self, opener: TurnOpener) -> None:
        super().__init__()
        self._opener = opener
        self._turn: ReportedTurn | None = None

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        turn = self._turn = self._opener.open(getattr(ctx.agent, "name", None), ctx.conversation_id)
        try:
            result = await handler()
        except BaseException as error:
            turn.close(error=error)
            raise
        if turn.is_own:
            turn.turn.answer = getattr(result, "output", None)
        turn.close()
        return result

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        turn = self._turn
        if turn is None:  # a run that the framework does not wrap
            return await handler(request_context)
        model = request_context.model
        with turn.model_call(model.model_name, provider=model.system or "") as replies:
            nudge = turn.take_nudge()
            if nudge is not None:
                note = ModelRequest(parts=[SystemPromptPart(nudge)])
                request_context = dataclasses.replace(request_context, messages=[*request_context.messages, note])
            response = await handler(request_context)
            _note(turn, replies, response)
        return response

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        turn = self._turn
        if turn is None:
            return await handler(args)
        with turn.tool_call(call.tool_name, call.args, call_id=call.tool_call_id) as running:
            result = await handler(args)
            running.returned(result)
        return result


def _note(turn: ReportedTurn, replies: Replies, response: Any) -> None:
    replies.reply = response.usage
    try:
        kinds = {part.part_kind for part in response.parts}
        if kinds <= {"text", "thinking"}:
            replies.text = "".join(part.content for part in response.parts if part.part_kind == "text")
    except Exception:
        turn.state.watch.internal_error("a model's reply")

"""The Claude Agent SDK: hooks for its options, and its message stream."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any, Final, Unpack

from turnwatch.core.events import ModelCall, Usage
from turnwatch.core.guard import Guarding
from turnwatch.core.usage import read_usage
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError, TurnStopped
from turnwatch.guards.frameworks.quiet_hook import quiet_hook
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener
from turnwatch.sources.calls_in_progress import ToolCallInProgress

try:
    from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, HookMatcher, ResultMessage, TextBlock
except ImportError:
    raise MissingExtraError("turnwatch.guards.frameworks.claude_agent_sdk", "claude-agent-sdk") from None

MAX_SESSIONS: Final = 1_000
_EVENTS: Final = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")


class _Reply:
    """A model's reply, whose blocks come in messages of their own.

    Attributes:
        call: The model call.
        usage: What it said of its tokens.
        text: What was said; None where a tool was asked for.
    """

    def __init__(self, call: ModelCall, message: AssistantMessage) -> None:
        self.call = call
        self.usage = message.usage
        self.text: str | None = ""
        self._message_id: str | None = message.message_id
        self.add(message)

    def goes_on_in(self, message: AssistantMessage) -> bool:
        """Whether this message has more of it."""
        return self._message_id is not None and self._message_id == str(message.message_id)

    def add(self, message: AssistantMessage) -> None:
        """Take in the blocks of a message."""
        for block in message.content:
            is_said = self.text is not None and isinstance(block, TextBlock)
            self.text = f"{self.text}{block.text}" if is_said else None


class _Session:
    """One session of the command line that the SDK runs: its open turn and what is under way.

    Attributes:
        turn: The turn between a prompt and its result.
        tools: Tool calls that run, by id.
        replies: Those that are coming in, by the tool call that the sub-agent runs in; None for the agent that was
            asked. Their messages may come mixed.
        output_tokens: What the calls of the agent that was asked said they wrote.
    """

    def __init__(self, turn: ReportedTurn) -> None:
        self.turn = turn
        self.tools: dict[str, ToolCallInProgress] = {}
        self.replies: dict[str | None, _Reply] = {}
        self.output_tokens = 0


class TurnHooks:
    """Watches and guards what a prompt sets off as one turn.

    ::

        hooks = TurnHooks(agent="coder", on_loop="nudge", limits=Limits(max_tool_calls=40))
        async for message in hooks.watch(query(prompt="...", options=hooks.guard(ClaudeAgentOptions(...)))):
            ...

    ``guard`` sees and stops tool calls; ``watch`` adds model calls, tokens and dollars. A tool call that is refused,
    or that leaves the turn stuck, ends the run the SDK's way (``continue: false``); ``watch`` then raises
    ``TurnStopped`` behind the last message. A nudge is put beside a tool's result. Model calls are known when their
    reply is there, so a limit on them stops the run one call late.

    Args:
        agent: The agent's name.
        conversation_id: Its conversation; the session's id when left out.
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
        self._opener = TurnOpener(agent, conversation_id, watch, guarding)
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._watched: set[str] = set()

    def guard(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """A copy of these options with the hooks added to those that are there."""
        options = copy.copy(options) if options is not None else ClaudeAgentOptions()
        hooks = {event: list(matchers) for event, matchers in (options.hooks or {}).items()}
        for event in _EVENTS:
            hooks.setdefault(event, []).append(HookMatcher(hooks=[self._hook]))
        options.hooks = hooks
        return options

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None or (session.turn.is_own and session.turn.state.ended):
            session = self._sessions[session_id] = _Session(self._opener.open(conversation_id=session_id))
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)[1].turn.close("evicted")
        return session

    # Hooks

    async def _hook(self, event: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        return self._heard(event) or {}

    @quiet_hook
    def _heard(self, event: Any) -> dict[str, Any]:
        session_id = str(event.get("session_id") or "")
        name = event["hook_event_name"]
        session = self._session(session_id)
        try:
            if name == "PreToolUse":
                session.tools[event["tool_use_id"]] = session.turn.begin_tool(
                    event["tool_name"], event["tool_input"], call_id=event["tool_use_id"]
                )
            elif name in ("PostToolUse", "PostToolUseFailure"):
                return self._tool_ended(session, name, event)
            elif name == "Stop" and session_id not in self._watched:
                self._close(session_id, session)
        except TurnStopped as stopped:
            session.turn.stopped = stopped
            answer: dict[str, Any] = {"continue_": False, "stopReason": str(stopped)}
            if name == "PreToolUse":
                answer["hookSpecificOutput"] = {
                    "hookEventName": name,
                    "permissionDecision": "deny",
                    "permissionDecisionReason": str(stopped),
                }
            if session_id not in self._watched:
                self._close(session_id, session, error=stopped)
            return answer
        return {}

    def _tool_ended(self, session: _Session, name: str, event: Any) -> dict[str, Any]:
        self._end_model(session, event["tool_use_id"])  # the last words of a sub-agent
        running = session.tools.pop(event["tool_use_id"], None)
        if running is None:
            return {}
        if name == "PostToolUse":
            running.returned(event.get("tool_response"))
        else:
            running.failed_saying(event.get("error"))
        nudge = session.turn.take_nudge()
        return {} if nudge is None else {"hookSpecificOutput": {"hookEventName": name, "additionalContext": nudge}}

    def _close(self, session_id: str, session: _Session, **how: Any) -> None:
        session.turn.close(**how)
        self._sessions.pop(session_id, None)
        self._watched.discard(session_id)

    # Messages

    async def watch(self, messages: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The same messages; the model calls among them are counted.

        Args:
            messages: Of ``query`` or ``ClaudeSDKClient.receive_response``.

        Raises:
            TurnStopped: The turn was stopped. Behind its last message, or at the reply that passed a limit.
        """
        session_id = ""
        try:
            async for message in messages:
                session_id = session_id or _session_id(message)
                if session_id:
                    self._watched.add(session_id)
                if isinstance(message, AssistantMessage):
                    self._replied(session_id, message)
                yield message
                if isinstance(message, ResultMessage):
                    self._result(session_id, message)
        except BaseException as error:  # the command line has failed, or whoever read wants no more
            self._broken_off(session_id, error)
            raise
        self._broken_off(session_id)

    @quiet_hook
    def _broken_off(self, session_id: str, error: BaseException | None = None) -> None:
        """End the turn whose result will not come, if there is one."""
        self._watched.discard(session_id)
        session = self._sessions.get(session_id)
        if session is not None:
            for sub_agent in list(session.replies):
                self._end_model(session, sub_agent)
            self._close(session_id, session, stop_reason="unknown", error=error)

    @quiet_hook
    def _replied(self, session_id: str, message: AssistantMessage) -> None:
        session, sub_agent = self._session(session_id), message.parent_tool_use_id
        reply = session.replies.get(sub_agent)
        if reply is not None and reply.goes_on_in(message):
            reply.add(message)
            return
        self._end_model(session, sub_agent)
        try:
            call = session.turn.begin_model(message.model, provider="anthropic")
        except TurnStopped as stopped:
            self._close(session_id, session, error=stopped)
            raise
        session.replies[sub_agent] = _Reply(call, message)

    def _end_model(self, session: _Session, sub_agent: str | None = None, usage: Usage | None = None) -> None:
        reply = session.replies.pop(sub_agent, None)
        if reply is None:
            return
        said = read_usage(reply.usage)
        if said is not None and sub_agent is None:
            session.output_tokens += said.output
            if usage is not None and usage.output > session.output_tokens:
                # A reply's own usage is from its beginning; only the result knows all that was written.
                said.output += usage.output - session.output_tokens
        session.turn.end_model(reply.call, said, text=reply.text)

    @quiet_hook
    def _result(self, session_id: str, message: ResultMessage) -> None:
        session = self._session(session_id)
        for sub_agent in [each for each in session.replies if each is not None]:
            self._end_model(session, sub_agent)
        self._end_model(session, usage=read_usage(message.usage))
        stopped = session.turn.stopped
        if session.turn.is_own:
            session.turn.turn.answer = message.result
        reason = "max_iterations" if message.subtype == "error_max_turns" else "error"
        self._close(session_id, session, stop_reason=reason if message.is_error else "final_answer", error=stopped)
        if stopped is not None:
            raise stopped


def _session_id(message: Any) -> str:
    session_id = getattr(message, "session_id", None)
    if session_id is None:
        data = getattr(message, "data", None)
        session_id = data.get("session_id") if isinstance(data, dict) else None
    return str(session_id or "")

"""Which turn does a client's request belong to, and what do its messages tell of tool calls?"""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

from turnwatch.core.events import ModelCall
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.guard import Guarding
from turnwatch.core.quietly import Quietly
from turnwatch.core.watch import Watch
from turnwatch.errors import TurnStopped
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener
from turnwatch.guards.frameworks.wire_formats import Asked, Streamed, WireFormat
from turnwatch.sources.calls_in_progress import ToolCallInProgress
from turnwatch.sources.hand import current_turn

# Turns that wait for the results of their tools, all users of one client together.
MAX_WAITING: Final = 10_000
# By then no request will bring them: what the reply asked for was the answer itself, as where a tool gives an answer
# its form, or the agent has given up.
GIVEN_UP_SECONDS: Final = 600.0


@final
class ClientTurn:
    """One turn, as its requests and replies show it.

    Attributes:
        reported: Where its calls are counted.
        wire_format: The API it uses.
        waits_since: When its latest reply asked for tools.
    """

    def __init__(self, reported: ReportedTurn, wire_format: WireFormat) -> None:
        self.reported = reported
        self.wire_format = wire_format
        self.waits_since = 0.0
        self._running: dict[str, ToolCallInProgress] = {}
        self._asked: dict[str, Asked] = {}
        self._tool_calls_before = 0

    @property
    def waits_for(self) -> list[str]:
        """The ids of the calls whose results the next request brings."""
        return [*self._running, *self._asked]

    def begin(self, body: Mapping[str, Any]) -> tuple[ModelCall, Mapping[str, Any]]:
        """Take a request: the tool results in it, then the model call itself.

        Returns:
            The call, and the body to send, which may have a nudge more.

        Raises:
            TurnStopped: A guard refuses the call.
        """
        self._take_results(body)
        call = self.reported.begin_model(str(body.get("model") or ""), provider=self.wire_format.provider)
        nudge = self.reported.take_nudge()
        return call, body if nudge is None else self.wire_format.with_nudge(body, nudge)

    def add(self, streamed: Streamed, event: Any) -> None:
        """Take one event of a streamed reply."""
        try:
            streamed.add(event)
        except Exception:
            self.reported.state.watch.internal_error("a streamed reply")

    def end(self, call: ModelCall, reply: Any, *, abandoned: bool) -> None:
        """Take a reply: what it cost, and the tool calls it asks for.

        Raises:
            TurnStopped: A guard refuses one of the tool calls.
        """
        asked: list[Asked] = []
        text = ""
        try:
            asked = [] if abandoned else self.wire_format.asked(reply)
            text = "" if asked or abandoned else self.wire_format.text(reply)
        except Exception:
            self.reported.state.watch.internal_error("a reply")
        self.reported.end_model(call, reply, text=text)
        if self.reported.is_own:
            for one in asked:
                self._running[one.call_id] = self.reported.begin_tool(one.tool, one.arguments, call_id=one.call_id)
            return
        # In a turn of the agent's own, its code or another hook may count the call when it runs it.
        self._asked = {one.call_id: one for one in asked}
        self._tool_calls_before = self.reported.state.tool_calls

    def _take_results(self, body: Mapping[str, Any]) -> None:
        state = self.reported.state
        if self._asked and state.tool_calls != self._tool_calls_before:
            self._asked.clear()  # somebody nearer to the tools counts them
        if not self._running and not self._asked:
            return
        for answered in self.wire_format.answered(body):
            running = self._running.pop(answered.call_id, None)
            asked = self._asked.pop(answered.call_id, None)
            if asked is not None:
                running = self.reported.begin_tool(asked.tool, asked.arguments, call_id=asked.call_id, is_over=True)
            if running is None:
                continue
            if answered.failed:
                running.failed_saying(answered.result)
            else:
                running.returned(answered.result)

    def give_up(self, stop_reason: str) -> None:
        """End the turn: no request will bring the results of the calls that were asked for."""
        running, self._running = self._running, {}
        self._asked.clear()
        for call in running.values():
            with contextlib.suppress(TurnStopped):
                call.unanswered()
        self.reported.close(stop_reason)


@dataclass(frozen=True, slots=True)
class Begun:
    """A request that may be sent.

    Attributes:
        turn: Its turn.
        call: The model call that it is.
        body: What to send: the request's own body, or one with a nudge more.
    """

    turn: ClientTurn
    call: ModelCall
    body: Mapping[str, Any]


@final
class ClientTurns:
    """The turns that one client is used for.

    Args:
        agent, conversation_id, watch, guarding: See ``wrap``.
    """

    def __init__(
        self, agent: str, conversation_id: str | None, watch: Watch | None, guarding: Mapping[str, Any]
    ) -> None:
        self._opener = TurnOpener(agent, conversation_id, watch, cast("Guarding", dict(guarding)))
        self._waiting: OrderedDict[str, ClientTurn] = OrderedDict()  # by the ids of calls that were asked for
        self._lock = fork_safe_lock()
        _all.add(self)

    def that_asked(self, call_id: str) -> ReportedTurn | None:
        """The turn that waits for the result of this call."""
        with self._lock:
            turn = self._waiting.get(call_id)
        return None if turn is None else turn.reported

    def begin(self, wire_format: WireFormat, body: Mapping[str, Any]) -> Begun | None:
        """Take a request before it is sent; None when turnwatch failed, and the request goes out unwatched.

        Raises:
            TurnStopped: A guard refuses the call.
        """
        turn: ClientTurn | None = None
        try:
            turn = self._turn_of(wire_format, body)
            call, sent = turn.begin(body)
            return Begun(turn, call, sent)
        except TurnStopped as stopped:
            if turn is not None:
                turn.reported.close(error=stopped)
            raise
        except Exception:
            self._internal_error("a client's request")
            return None

    def _turn_of(self, wire_format: WireFormat, body: Mapping[str, Any]) -> ClientTurn:
        """The turn that this request goes on with, or a new one."""
        turn = None
        with self._lock:
            if self._waiting:
                for answered in wire_format.answered(body):
                    turn = self._waiting.pop(answered.call_id, turn)
        here = current_turn()
        if turn is not None and not turn.reported.state.ended and (turn.reported.is_own or turn.reported.turn is here):
            return turn
        return ClientTurn(self._opener.open(), wire_format)

    def _internal_error(self, where: str) -> None:
        self._opener.watch.internal_error(where)

    def replied(self, turn: ClientTurn, call: ModelCall, reply: Any, *, abandoned: bool = False) -> None:
        """A reply has arrived in full.

        Raises:
            TurnStopped: A guard refuses a tool call that it asks for.
        """
        try:
            turn.end(call, reply, abandoned=abandoned)
            self._wait_for(turn, abandoned=abandoned)
        except TurnStopped as stopped:
            turn.reported.close(error=stopped)
            raise
        except Exception:
            self._internal_error("a client's reply")

    def _wait_for(self, turn: ClientTurn, *, abandoned: bool) -> None:
        waits_for = turn.waits_for
        if not waits_for:
            turn.reported.close("user_cancelled" if abandoned else "final_answer")
            return
        dropped: list[ClientTurn] = []
        watch = self._opener.watch
        turn.waits_since = watch.clock()
        watch.before_gauges(_end_given_up)
        with self._lock:
            for call_id in waits_for:
                self._waiting[call_id] = turn
            while len(self._waiting) > MAX_WAITING:
                dropped.append(self._waiting.popitem(last=False)[1])
        for one in dropped:
            one.give_up("evicted")

    def end_given_up(self) -> None:
        """End the turns that have waited too long for the results of their tools."""
        watch = self._opener.watch
        since = watch.clock() - GIVEN_UP_SECONDS
        given_up: list[ClientTurn] = []
        with self._lock:
            while self._waiting and next(iter(self._waiting.values())).waits_since <= since:
                given_up.append(self._waiting.popitem(last=False)[1])
        for turn in given_up:
            with Quietly(watch, "the end of a client's turn"):
                turn.give_up("unknown")

    def failed(self, turn: ClientTurn, call: ModelCall, error: BaseException) -> None:
        """No reply came."""
        try:
            turn.reported.end_model(call, error=error)
            turn.reported.close(error=error)
        except Exception:
            self._internal_error("a client's error")


_all: Final[weakref.WeakSet[ClientTurns]] = weakref.WeakSet()


def _end_given_up() -> None:
    for turns in list(_all):
        turns.end_given_up()


def turn_that_asked(call_id: str) -> ReportedTurn | None:
    """The turn, of whichever client, that waits for the result of this call; None where there is none."""
    return next((turn for turns in list(_all) if (turn := turns.that_asked(call_id)) is not None), None)

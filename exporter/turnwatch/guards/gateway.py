"""The one door through which an agent's tool calls go."""

from __future__ import annotations

import asyncio
import inspect
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, Unpack, final

from turnwatch.core.coroutines import is_coroutine_function
from turnwatch.core.default import default_watch
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.guard import Guarding
from turnwatch.core.limits import NO_LIMITS
from turnwatch.core.names import name_of
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.errors import UnknownToolError
from turnwatch.guards.circuit_breaker import CircuitBreaker
from turnwatch.guards.from_settings import check_guarding
from turnwatch.guards.gateway_call import NOT_ANSWERED, GatewayCall, Shared
from turnwatch.guards.scratchpad import Scratchpad
from turnwatch.guards.tool_rules import check_tools, override_of, rules_for
from turnwatch.settings import ToolOverride
from turnwatch.sources.calls_in_progress import refuse_coroutine
from turnwatch.sources.hand import Turn, current_turn, stop_reason_of

_MAX_NAME_SHOWN: Final = 100


@final
class ToolGateway:
    """Runs tools for an agent, with every guard on the way.

    ::

        gateway = ToolGateway(impls={"search.read": search}, limits=Limits(max_tool_calls=12))
        rows = gateway.call("search.read", {"q": "refunds"})

    A call is counted in the current turn, or in a turn of the gateway's own where there is none. Then, in this
    order: the turn's guard admits it (limits, kill flag, loop); an identical call within the dedupe window gets
    the first one's result again, if nothing changed since; a tool that is down is answered for; the same call, if
    it is running, is waited for; the tool runs, and is retried by the one policy. Thread-safe; ``call`` and
    ``acall`` may be mixed.

    Args:
        impls: The tools: name to function or coroutine function, called with the arguments as keywords.
        limits: Put on every turn that uses the gateway, beside that turn's own.
        overrides: What is special about single tools, as in the settings; wins over them.
        safe_mode: Per tool, what answers while its circuit is open: a result, or a function of the arguments.
        agent, conversation_id: Of the gateway's own turn.
        watch: Where calls are counted; the process's own watch when left out.
        sleep, asleep: Wait between attempts; for tests.
        **guarding: Of the gateway's own turn; see ``turnwatch.turn``.

    Raises:
        SettingsError: An override has an unknown key or a wrong type, contradicts itself or the settings, or is for a
            tool that is not in ``impls``; or a safe-mode answer is.
        TypeError: A tool cannot be called, there is no such keyword, or ``limits`` or ``conversation_limits`` is
            something else than Limits.
        ValueError: ``on_loop`` names no response.
    """

    def __init__(
        self,
        impls: Mapping[str, Callable[..., Any]],
        *,
        overrides: Mapping[str, ToolOverride | Mapping[str, Any]] | None = None,
        safe_mode: Mapping[str, Any] | None = None,
        agent: str = "",
        conversation_id: str | None = None,
        watch: Watch | None = None,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **guarding: Unpack[Guarding],
    ) -> None:
        check_guarding(guarding)
        self._impls = dict(impls)
        self._watch = watch = watch or default_watch()
        here = {tool: override_of(tool, said) for tool, said in (overrides or {}).items()}
        check_tools(self._impls, here, safe_mode or {})
        settings = watch.settings
        self._rules = {tool: rules_for(settings, tool, here.get(tool)) for tool in self._impls}
        self._max_calls = {tool: said.max_calls for tool, said in here.items() if said.max_calls is not None}
        self._breakers = {tool: CircuitBreaker(settings.tools.circuit) for tool in self._impls}
        self._coroutines = {tool for tool, impl in self._impls.items() if is_coroutine_function(impl)}
        self._safe_mode = dict(safe_mode or {})
        self._agent = agent
        self._conversation_id = conversation_id
        self._guarding = guarding
        self._sleep = sleep
        self._asleep = asleep
        self._shared = Shared(watch)
        self._scratchpads: weakref.WeakKeyDictionary[TurnState, Scratchpad] = weakref.WeakKeyDictionary()
        self._own: Turn | None = None
        self._lock = fork_safe_lock()
        for tool in self._impls:
            watch.register_tool(tool)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of its tools."""
        return tuple(self._impls)

    # Calls

    def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        turn: Turn | None = None,
        confirmed: bool = False,
    ) -> Any:
        """Call a tool.

        Args:
            name: The tool.
            args: Its arguments.
            call_id: The model's id for the call.
            turn: The turn it belongs to; the current one when left out. Threads do not inherit the current turn.
            confirmed: The caller's word that a call is to be sent although an identical one may have been carried
                out or answered before.

        Returns:
            What the tool returned, now or for an identical call before; or the safe-mode answer when it is down.

        Raises:
            UnknownToolError: There is no such tool; the call is counted.
            SideEffectHeld: An identical call failed without saying whether it was carried out.
            TurnStopped: A guard ends the turn.
            TypeError: The tool gives a coroutine; use ``acall``.

        What the tool itself raises passes unchanged.
        """
        if name in self._coroutines:
            raise TypeError(f"{name} is a coroutine function: use acall")
        args = {} if args is None else args
        call = self._begin(name, args, call_id, turn)
        answer = call.answer(confirmed)
        if answer is not NOT_ANSWERED:
            return answer
        while (flight := call.flight_to_wait_for()) is not None:
            with call.waiting():
                outcome = flight.wait()
            answer = call.landed(outcome)
            if answer is not NOT_ANSWERED:
                return answer
        impl = self._impls[name]
        try:
            while True:
                try:
                    with call.while_it_runs():
                        result = impl(**args)
                    refuse_coroutine(name, result, "acall")
                    wait = call.wait_after_result(result)
                except Exception as error:
                    wait = call.wait_after_error(error)
                    if wait is None:
                        raise
                if wait is None:
                    break
                self._sleep(wait)
        except BaseException as error:
            call.raised(error)
            raise
        return call.returned(result)

    async def acall(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        turn: Turn | None = None,
        confirmed: bool = False,
    ) -> Any:
        """Call a tool from a coroutine; a plain function runs in a thread. See ``call``."""
        args = {} if args is None else args
        call = self._begin(name, args, call_id, turn)
        answer = call.answer(confirmed)
        if answer is not NOT_ANSWERED:
            return answer
        loop = asyncio.get_running_loop()
        while (flight := call.flight_to_wait_for(loop)) is not None:
            with call.waiting():
                outcome = await flight.await_()
            answer = call.landed(outcome)
            if answer is not NOT_ANSWERED:
                return answer
        try:
            while True:
                try:
                    with call.while_it_runs():
                        result = await self._run(call, name, args)
                    wait = call.wait_after_result(result)
                except Exception as error:
                    wait = call.wait_after_error(error)
                    if wait is None:
                        raise
                if wait is None:
                    break
                await self._asleep(wait)
        except BaseException as error:
            call.raised(error)
            raise
        return call.returned(result)

    async def _run(self, call: GatewayCall, name: str, args: Mapping[str, Any]) -> Any:
        impl = self._impls[name]
        if name in self._coroutines:
            return await impl(**args)

        def run() -> tuple[Any, StopIteration | None]:
            try:
                return impl(**args), None
            except StopIteration as error:  # a future cannot carry it: whoever waited would wait for ever
                return None, error
            finally:
                call.thread_ended()

        result, error = await asyncio.to_thread(run)
        if error is not None:
            raise error
        return await result if inspect.isawaitable(result) else result

    def _begin(self, name: str, args: Mapping[str, Any], call_id: str | None, turn: Turn | None) -> GatewayCall:
        turn = turn or current_turn() or self._own_turn()
        state = turn.state
        scratchpad = self._enter(state)
        running = turn.begin_tool(name, args, call_id=call_id)
        rules = self._rules.get(name)
        if rules is None:
            shown = "".join(letter for letter in name_of(name) if letter.isprintable())[:_MAX_NAME_SHOWN]
            error = UnknownToolError(f"unknown tool {shown!r}; there are {', '.join(self._impls) or 'none'}")
            scratchpad.add(name, shown, args, "there is no such tool")
            running.failed(error)
            raise error
        return GatewayCall(
            running,
            args,
            rules,
            self._shared,
            self._breakers[name],
            scratchpad,
            state.guard,
            state.conversation_id or state.turn_id,
            state.turn_id,
            self._safe_mode.get(name),
        )

    def _enter(self, state: TurnState) -> Scratchpad:
        """The turn's scratchpad; at its first call, the gateway's limits are put on the turn."""
        scratchpad = self._scratchpads.get(state)
        if scratchpad is not None:
            return scratchpad
        with self._lock:  # calls side by side go on once the limits are there
            scratchpad = self._scratchpads.get(state)
            if scratchpad is None:
                if state.guard is not None:
                    state.guard.tighten(self._guarding.get("limits") or NO_LIMITS, self._max_calls)
                scratchpad = self._scratchpads[state] = Scratchpad()
        return scratchpad

    # The gateway's own turn

    def _own_turn(self) -> Turn:
        with self._lock:
            if self._own is None:
                self._own = Turn(self._agent, self._conversation_id, watch=self._watch, **self._guarding).open()
            return self._own

    @property
    def turn(self) -> Turn:
        """The turn that calls count in here and now: the current one, or the gateway's own."""
        return current_turn() or self._own_turn()

    def close(self, stop_reason: str = "final_answer") -> None:
        """End the gateway's own turn, if it has one; the next call opens another."""
        with self._lock:
            own, self._own = self._own, None
        if own is not None:
            own.close(stop_reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close("final_answer" if error is None else stop_reason_of(error))

    # The scratchpad

    def scratchpad(self, turn: Turn | None = None) -> str:
        """What the turn has tried, with arguments, for the agent's own prompt; "" when nothing was tried."""
        turn = turn or current_turn() or self._own
        return "" if turn is None else self._enter(turn.state).text()

    def note(self, text: str, turn: Turn | None = None) -> None:
        """Add a remark to the scratchpad, such as why something did not help."""
        self._enter((turn or self.turn).state).note(text)

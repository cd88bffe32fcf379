"""One turn: what the agent did between a user's message and its answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from turnwatch.core.canonical import canonical_bytes
from turnwatch.core.events import MISSING, STOP_REASONS, ModelCall, ToolCall, Usage
from turnwatch.core.keys import key_of
from turnwatch.core.names import id_of, is_plain_name, name_of
from turnwatch.core.quietly import Quietly
from turnwatch.core.tool_in_turn import ToolInTurn
from turnwatch.core.turn_counts import TurnCounts
from turnwatch.core.verdict import Verdict, graver, in_its_turn
from turnwatch.core.windows import put_tails

if TYPE_CHECKING:
    from turnwatch.core.evidence import Evidence
    from turnwatch.core.series import ToolSeries

_MAX_VERDICTS: Final = 32


class TurnState(TurnCounts):
    """Counts one turn's calls and judges them, in memory that does not grow with the turn.

    Takes the arguments of ``TurnCounts`` and has its attributes.
    """

    __slots__ = ()

    # Tool calls

    def record(self, tool: str, input_hash: str | None, *, at: float | None = None) -> int:
        """Count a call of which only the hash is known, and never the result.

        Returns:
            How often this (tool, input hash) has been seen in this turn, this call included; 0 when
            the hash is None.
        """
        call = ToolCall(tool, input_hash=input_hash, started=at, ended=at)
        seen = self.begin_call(call)
        self.end_call(call)
        return seen

    def begin_call(self, call: ToolCall) -> int:
        """Count a call at its start, before its result is known.

        Fills ``call.input_hash`` and what the settings say about the tool. A call without times is counted
        as of now, but no rule about its pace applies.

        Returns:
            How often this (tool, input hash) has been seen in this turn, this call included; 0 when
            the arguments are missing, or hold what does not show its content.
        """
        try:
            return self._begin_call(call)
        except Exception:
            self.watch.internal_error("begin_call")
            return 0

    def _begin_call(self, call: ToolCall) -> int:
        watch = self.watch
        tool = call.tool
        if not is_plain_name(tool):
            tool = call.tool = name_of(tool)
        key = call.input_hash
        if key is not None and type(key) is not str:
            key = call.input_hash = name_of(key)
        if call.args is not MISSING:
            call.canonical = canonical_bytes(call.args, watch.volatile_keys(tool))
            if key is None:
                key = call.input_hash = watch.hash_of_call(tool, call.canonical)
        now = call.started if call.started is not None else watch.clock()
        if call.round is None and self.iterations:
            call.round = self.iterations
        window = watch.window
        with watch.lock:
            agent = self.series
            in_turn = self._tools.get(tool) or self._tool(tool)
            series = in_turn.series
            if in_turn.override is not None:
                in_turn.apply_override(call, in_turn.override)
            if now > self.last_active:
                self.last_active = now
            self.tool_calls += 1
            in_turn.unfinished += 1
            agent.tool_calls.put(self.tool_calls, now + window)
            if self._stuck:
                self.wasted_tool_calls += 1
                series.wasted().inc()
            if key is None:
                self.missing_arguments += 1
                watch.meter.counter("turnwatch_fingerprint_missing_total", self.source).inc()
                return 0
            number = key_of(tool, key)
            if self._conversation is not None:
                again = self._conversation.keys.add(number, now, window)
                agent.conversation_identical.put(again.count if again else 1, now + window)
            seen = self._keys.add(number, now, window)
            if seen is None:
                series.identical.put(1, now + window)
                return 1
            put_tails(series.identical, seen.times, window)
            self.repeats += 1
            in_turn.pending += 1
            if seen.count > series.max_identical:
                self.duplicates += 1
                series.duplicates.inc(1.0, watch.exemplar())
            return seen.count

    def end_call(self, call: ToolCall) -> Verdict | None:
        """Note what came of a call that was begun, and judge the turn.

        Returns:
            A verdict when this call brought a new one.
        """
        try:
            return self._end_call(call)
        except Exception:
            self.watch.internal_error("end_call")
            return None

    def _end_call(self, call: ToolCall) -> Verdict | None:
        watch = self.watch
        started = call.started
        if call.ended is None and started is not None:
            call.ended = watch.clock()
        ended = watch.clock() if call.ended is None else call.ended
        if started is None:
            started = ended
        new, repeat_result, stale_calls = self._judge(call)
        call.canonical = call.identity = None  # calls are kept, at 4 KB of orjson's each, or filled anew for the next
        with watch.lock:
            in_turn = self._tools.get(call.tool) or self._tool(call.tool)
            in_turn.call_ended(call.outcome)
            if ended > started:
                in_turn.series.took(ended - started)
            if ended > self.last_active:
                self.last_active = ended
            if repeat_result is not None:
                in_turn.repeat_ended(repeat_result)
            if stale_calls:
                seen = self._keys.again(key_of(call.tool, call.input_hash)) if call.input_hash else None
                if seen is None:  # the engine takes calls for one that differ in white space and the like
                    in_turn.series.stale.put(stale_calls, started + watch.window)
                else:
                    put_tails(in_turn.series.stale, seen.times, watch.window, at_most=stale_calls)
            if new is not None:
                self._add_verdict(new, in_turn.series)
        if watch.listeners:
            watch.tell(lambda listener: listener.tool_ended(self, call))
        if new is not None:
            watch.notify(self, new)
        return new

    def _tool(self, tool: str) -> ToolInTurn:
        """This tool's part of the turn, kept under its label so that invented names take no memory."""
        series = self.watch.tool_series(self.series, tool, self.agent)
        in_turn = self._tools.get(series.label)
        if in_turn is None:
            in_turn = self._tools[series.label] = ToolInTurn(series, self.watch.override(tool))
        return in_turn

    def _judge(self, call: ToolCall) -> tuple[Verdict | None, str | None, int]:
        """Ask the engines of the turn and of its conversation.

        Not under the watch's lock: comparing long results takes time, and other turns must not wait for it.

        Returns:
            The verdict, what the result was against the one before ("same", "changed", "unknown" or None),
            and how many rounds of the same call gave it.
        """
        try:
            with self._judging:
                new = self.engine.observe(call)
                repeat_result, stale_calls = self.engine.last.repeat_result, self.engine.last.stale_calls
            if self._conversation is not None:
                with self._conversation.judging:
                    over_turns = self._conversation.engine.observe(call, self.agent)
                if over_turns is not None:
                    new = graver(new, in_its_turn(over_turns, self.engine.calls))
        except Exception:
            self.watch.internal_error("judging a call")
            return None, None, 0
        return new, repeat_result, stale_calls

    def _add_verdict(self, verdict: Verdict, series: ToolSeries) -> None:
        verdicts = self._verdicts = self._verdicts or []
        if len(verdicts) < _MAX_VERDICTS:
            verdicts.append(verdict)
        self.verdict = graver(self.verdict, verdict)
        if verdict.severity == "stuck":
            self._stuck = True
        series.loops(verdict.kind, verdict.severity).inc(1.0, self.watch.exemplar())

    # Model calls

    def begin_model(self, at: float | None = None) -> int:
        """Count a model call at its start.

        Returns:
            The number of this iteration.
        """
        try:
            watch = self.watch
            now = watch.clock() if at is None else at
            with watch.lock:
                series = self.series
                self.iterations += 1
                self.last_active = max(self.last_active, now)
                series.iterations.put(self.iterations, now + watch.window)
                if self.iterations == series.iteration_threshold + 1:
                    series.over_iterations.inc(1.0, watch.exemplar())
                if self._conversation is not None:
                    self._conversation.model_calls += 1
                    self._conversation.last_active = max(self._conversation.last_active, now)
                    series.conversation_model_calls.put(self._conversation.model_calls, now + watch.window)
        except Exception:
            self.watch.internal_error("begin_model")
        return self.iterations

    def end_model(self, call: ModelCall) -> Verdict | None:
        """Note what came of a model call that was begun: tokens, dollars, duration.

        Returns:
            A verdict when its text reply brought a new one.
        """
        try:
            return self._end_model(call)
        except Exception:
            self.watch.internal_error("end_model")
            return None

    def _end_model(self, call: ModelCall) -> Verdict | None:
        watch = self.watch
        ended = watch.clock() if call.ended is None else call.ended
        if call.started is not None:
            call.ended = ended
        if not is_plain_name(call.model):
            call.model = name_of(call.model)
        usage, spend = call.usage, call.spend_usd
        if spend is not None and not 0 <= spend < math.inf:  # a counter that has seen NaN is NaN for ever
            call.spend_usd = spend = None
        if spend is None and usage is not None:
            spend = watch.prices.cost(call.provider, call.model, usage, call.started or ended)
        verdict = None if call.text is None else self._judge_reply(call.text)
        with watch.lock:
            series = self.series.models.get(call.model) or watch.model_series(self.series, call.model)
            series.calls["error" if call.outcome == "error" else "ok"].inc()
            if call.started is not None and ended > call.started:
                series.took(ended - call.started)
                self.engine.thought += ended - call.started
            self.last_active = max(self.last_active, ended)
            if usage is not None:
                self.usage = self.usage or Usage()
                self.usage.add(usage)
                series.used(usage)
            elif call.outcome != "error":
                self.series.without_usage.inc()
            if spend is None:
                if usage is not None:
                    self._unpriced_models = (self._unpriced_models or set()) | {call.model}
                    watch.meter.counter("agent_unpriced_model_calls_total", watch.model_label(call.model)).inc()
            else:
                self._priced_calls += 1
                self.spent_usd += spend
                series.spend.inc(spend)
                if self._stuck:
                    self.wasted_usd += spend
                    self.series.wasted_usd.inc(spend)
            self._add_to_totals(spend or 0.0, usage.total if usage is not None else 0, ended + watch.window)
            if verdict is not None:
                self._add_verdict(verdict, self._tool(verdict.tool).series)
        if watch.listeners:
            watch.tell(lambda listener: listener.model_ended(self, call))
        if verdict is not None:
            watch.notify(self, verdict)
        return verdict

    def _judge_reply(self, text: Evidence) -> Verdict | None:
        try:
            with self._judging:
                new = self.engine.observe_reply(text)
            if self._conversation is not None:
                with self._conversation.judging:
                    over_turns = self._conversation.engine.observe_reply(text, self.agent, self._key)
                if over_turns is not None:
                    new = graver(new, in_its_turn(over_turns, self.engine.calls))
        except Exception:
            self.watch.internal_error("judging a reply")
            return None
        return new

    def _add_to_totals(self, spend: float, tokens: int, expires: float) -> None:
        turn: TurnState | None = self
        while turn is not None:
            turn.total_spend_usd += spend
            turn.total_tokens += tokens
            turn.series.spend.put(turn.total_spend_usd, expires)
            turn.series.tokens.put(turn.total_tokens, expires)
            turn = turn.parent
        if self._conversation is not None:
            self._conversation.spend_usd += spend
            self._conversation.tokens += tokens
            self.series.conversation_spend.put(self._conversation.spend_usd, expires)

    def adopt(self, child: TurnState) -> None:
        """Take a turn for one that this one started, where that shows only after both have begun.

        What it has spent counts in the totals from here up, and what it spends yet will.
        """
        watch = self.watch
        with watch.lock:
            above: TurnState | None = self
            while above is not None and above is not child:
                above = above.parent
            if above is child or child.parent is not None or child.watch is not watch:
                return
            child.parent = above = self
            expires = child.last_active + watch.window
            while above is not None:
                above.total_spend_usd += child.total_spend_usd
                above.total_tokens += child.total_tokens
                above.series.spend.put(above.total_spend_usd, expires)
                above.series.tokens.put(above.total_tokens, expires)
                above = above.parent
        if self._conversation is not None and self._conversation is child._conversation:
            self._conversation.adopted(child.agent)

    def join_conversation(self, conversation_id: str) -> None:
        """Say to which conversation the turn belongs, where that shows only after it has begun.

        What it has counted so far counts there as well. Its calls so far are not compared with other turns' any more.
        """
        if self._conversation is not None:
            return
        self.conversation_id = id_of(conversation_id)
        conversation = self._enter(self.conversation_id)  # takes the lock itself, which is not to be taken twice
        with self.watch.lock:
            self._conversation = conversation
            conversation.model_calls += self.iterations
            conversation.spend_usd += self.spent_usd
            conversation.tokens += self.usage.total if self.usage is not None else 0
            expires = self.last_active + self.watch.window
            self.series.conversation_model_calls.put(conversation.model_calls, expires)
            self.series.conversation_spend.put(conversation.spend_usd, expires)

    # The end

    def told_until(self, at: float) -> None:
        """Say up to when, by the clock of whoever tells of it, a turn is known that is told of afterwards.

        While it is open its age goes on from there by this process's clock: spans that have waited for hours somewhere,
        or come from a machine whose clock is behind, make no turn hours old.
        """
        ages = self.series.open_turns
        if self._key in ages:
            ages[self._key] = self.watch.clock() - (at - self.started)

    def end(self, stop_reason: str = "final_answer", at: float | None = None) -> None:
        """End the turn; a second end changes nothing.

        Args:
            stop_reason: One of ``turnwatch.core.events.STOP_REASONS``; anything else counts as "unknown".
            at: Seconds since the epoch; now when left out.
        """
        hooks, self._before_end = self._before_end, None
        for hook in hooks or ():
            with Quietly(self.watch, "what precedes the end of a turn"):
                hook(self)
        try:
            self._end(stop_reason, at)
        except Exception:
            self.watch.internal_error("end")

    def _end(self, stop_reason: str, at: float | None) -> None:
        watch = self.watch
        now = watch.clock() if at is None else at
        with watch.lock:
            if self.stop_reason is not None:
                return
            self.stop_reason = said if (said := name_of(stop_reason)) in STOP_REASONS else "unknown"
            self._ended_at = now
            watch.closed(self, self._key)
            agent, meter = self.series.label, watch.meter
            for in_turn in self._tools.values():
                in_turn.turn_ended()
            meter.counter("agent_turns_total", agent, self.stop_reason).inc()
            meter.counter("agent_turns_judged_total", agent, self.engine.mode).inc()
            exemplar = watch.exemplar()
            meter.histogram("agent_iterations", agent, self.stop_reason).observe(self.iterations, exemplar)
            meter.histogram("agent_turn_tool_calls", agent).observe(self.tool_calls, exemplar)
            meter.histogram("agent_turn_duration_seconds", agent).observe(self.elapsed_seconds, exemplar)
            if self._priced_calls:
                meter.histogram("agent_turn_spend_usd", agent).observe(self.spent_usd, exemplar)
        if watch.listeners:
            watch.tell(lambda listener: listener.turn_ended(self))

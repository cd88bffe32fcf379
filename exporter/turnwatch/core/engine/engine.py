"""The engine: calls with their results in, verdicts out, one call at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from turnwatch.core.effects import changes_state, is_polling
from turnwatch.core.engine.identity import identity
from turnwatch.core.engine.memory import Answer, Memory, Question, add_number
from turnwatch.core.engine.streaks import ErrorStreak, Streak, ToolStreaks
from turnwatch.core.engine.thresholds import Thresholds
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Digest, Evidence
from turnwatch.core.verdict import SEVERITY_RANK, Kind, Mode, Severity, Verdict
from turnwatch.settings import DEFAULT_VOLATILE_KEYS

_NO_TEXT: Final = Evidence.of("")
_MAX_TOOLS: Final = 256


def _default_volatile_keys(_: str) -> frozenset[str]:
    return DEFAULT_VOLATILE_KEYS


class Seen:
    """What the latest call was, for counting.

    Attributes:
        repeat_result: Against the previous identical call of the turn: "same", "changed", or "unknown" when
            one of the two results is not known; None when there was no identical call before.
        stale_calls: Rounds of this same call with this same result while nothing changed, the first one
            included; 0 when this is not a stale call.
        stuck: Whether it belongs to a pattern that is stuck, reported before or not.
    """

    __slots__ = ("repeat_result", "stale_calls", "stuck")

    def __init__(self) -> None:
        self.repeat_result: Literal["same", "changed", "unknown"] | None = None
        self.stale_calls = 0
        self.stuck = False


class Engine:
    """Judges the calls of one turn, or with ``scope="conversation"`` of one conversation.

    Time and memory per call do not grow with the number of calls. Not thread-safe: the turn's lock guards it.

    Args:
        scope: "conversation" counts turns instead of rounds; see ``begin_turn``.
        bound: How many different calls are remembered.
        thresholds: How often is too often.
        volatile_keys: Gives the argument names that do not count for a tool; the default ones when left out.

    Attributes:
        calls: Calls observed so far.
        verdict: The worst verdict so far.
        last: What the latest call was.
    """

    __slots__ = (
        "_agent",
        "_blind",
        "_deep",
        "_deep_round",
        "_epoch",
        "_errors",
        "_memory",
        "_monologue",
        "_monologue_text",
        "_novel",
        "_reported",
        "_round",
        "_round_id",
        "_scope",
        "_t",
        "_tools",
        "_unknown_tools",
        "_volatile_keys",
        "_with_arguments",
        "_with_results",
        "_worked",
        "calls",
        "last",
        "verdict",
    )

    def __init__(
        self,
        *,
        scope: Literal["turn", "conversation"] = "turn",
        bound: int = 1000,
        thresholds: Thresholds | None = None,
        volatile_keys: Callable[[str], frozenset[str]] | None = None,
    ) -> None:
        self._t = thresholds or Thresholds()
        self._scope = scope
        self._volatile_keys = volatile_keys or _default_volatile_keys
        self._memory = Memory(bound)
        self.calls = 0
        self.verdict: Verdict | None = None
        self.last = Seen()
        self._round = 0
        self._round_id: int | None = None
        self._agent: str | None = None
        self._epoch = 0
        self._novel = 0
        self._worked = 0
        self._deep = 0
        self._deep_round = -1
        self._tools: dict[str, ToolStreaks] = {}
        self._errors = ErrorStreak()
        self._unknown_tools = Streak()
        self._blind: deque[tuple[object, int]] = deque(maxlen=self._t.blind_window)
        self._monologue = Streak()
        self._monologue_text: Digest | None = None
        self._reported: dict[tuple[str, str], int] = {}
        self._with_arguments = False
        self._with_results = False

    @property
    def mode(self) -> Mode:
        """How much could be seen so far: arguments and results, arguments only, or neither."""
        if self._with_results:
            return "full"
        return "args_only" if self._with_arguments else "none"

    @property
    def dropped(self) -> int:
        """How many different calls were forgotten because there were too many."""
        return self._memory.dropped

    def begin_turn(self, agent: str = "") -> None:
        """Tell an engine of a conversation that a turn begins.

        A turn of the agent that also had the turn before means that a user spoke between them, and a user who
        asks the same again is no stuck agent: everything counts from the start. A turn of another agent is a
        hand-off: nothing new came in from outside, and repetition goes on counting, in turns.
        """
        if agent == self._agent:
            self._epoch += 1
            self._forget_streaks()
        self._agent = agent
        self._round += 1

    def observe(self, call: ToolCall) -> Verdict | None:
        """Judge one more call, when its result is known.

        Returns:
            A verdict when this call brought one that the turn did not have yet. It is never taken back.
        """
        self.calls += 1
        seen = self.last
        seen.repeat_result = None
        seen.stale_calls = 0
        seen.stuck = False
        changes = changes_state(call)
        key = identity(call, changes, self._volatile_keys(call.tool))
        if key is None:
            return None
        self._with_arguments = True
        self._next_round(call)
        if self._monologue.rounds:
            self._monologue.end()
        question = self._memory.ask(key, self._epoch, self._round)
        question.calls += 1
        if question.round == self._round:
            question.in_round += 1
        else:
            question.round = self._round
            question.in_round = 1
        result = call.result
        # A tool that reports its failure in its text has failed, whatever the transport said.
        failed = call.outcome == "error" or call.outcome == "denied" or (result is not None and result.failure)
        if result is None and failed:
            result = Evidence.of(f"{call.outcome} {call.error_type or ''}")
        if result is None:
            if question.calls > 1:
                seen.repeat_result = "unknown"
            question.exact = None
            return self._without_result(call, key, question)
        self._with_results = True
        if failed:
            return self._failed(call, question, result)
        return self._succeeded(call, question, result, changes)

    def observe_reply(self, text: Evidence) -> Verdict | None:
        """Judge one more text reply of the model in which it made no tool call."""
        if text.normal != self._monologue_text:
            self._monologue.end()
            self._monologue_text = text.normal
        self._round += 1
        self.last.stuck = False
        rounds = self._monologue.add(self.calls, self._round)
        if rounds < self._t.monologue_stuck or text.empty:
            return None
        return self._report(
            "monologue",
            "stuck",
            "",
            [max(1, self.calls)],
            f"The model gave the same text {rounds} times in a row without calling a tool.",
            "the text of the reply",
            "a different reply, or a tool call",
        )

    # Rounds and progress

    def _next_round(self, call: ToolCall) -> None:
        if self._scope == "conversation":
            return
        if call.round is None or call.round != self._round_id:
            self._round_id = call.round
            self._round += 1

    def _forget_streaks(self) -> None:
        self._tools.clear()
        self._errors.end()
        self._unknown_tools.end()
        self._blind.clear()
        self._deep = 0

    def _tool(self, tool: str) -> ToolStreaks:
        streaks = self._tools.get(tool)
        if streaks is None:
            if len(self._tools) >= _MAX_TOOLS:
                del self._tools[next(iter(self._tools))]
            streaks = self._tools[tool] = ToolStreaks()
        return streaks

    # The three ways a call can end

    def _without_result(self, call: ToolCall, key: object, question: Question) -> Verdict | None:
        """Arguments only: the rules of the first loop detectors, and no more than a warning."""
        t = self._t
        if question.in_round > 1:
            return self._parallel(call, question)
        blind = self._blind
        blind.append((key, self.calls))
        numbers = [number for other, number in blind if other == key]
        if len(numbers) < t.blind_in_a_row or is_polling(call):
            return None
        recent = list(blind)[-t.blind_in_a_row :]
        if all(other == key for other, _ in recent):
            return self._report(
                "repeat",
                "warn",
                call.tool,
                numbers,
                f"{call.tool} was called {len(numbers)} times with the same arguments; its results are not known.",
                "the tool and its arguments",
                "another call between, or results that show a change",
            )
        if len(numbers) >= t.blind_in_window:
            return self._report(
                "window",
                "warn",
                call.tool,
                numbers,
                f"{len(numbers)} of the last {len(blind)} calls were {call.tool} with the same arguments; "
                "its results are not known.",
                "the tool and its arguments",
                "other calls between, or results that show a change",
            )
        return None

    def _failed(self, call: ToolCall, question: Question, error: Evidence) -> Verdict | None:
        t = self._t
        seen = self.last
        if question.calls > 1:
            seen.repeat_result = (
                "unknown" if question.exact is None else "same" if question.exact == error.exact else "changed"
            )
        answer, _ = self._answer(call, question, error)
        question.exact = error.exact
        number = self.calls
        if question.failure_round != self._round:
            if question.worked_before != self._worked:
                question.worked_before = self._worked
                question.failures = 0
                question.failure_numbers = []
            question.failure_round = self._round
            question.failures += 1
        add_number(question.failure_numbers, number)
        verdict = self._parallel(call, question) if question.in_round > 1 else None
        unknown = error.names_unknown_tool
        if unknown:
            rounds = self._unknown_tools.add(number, self._round)
            if rounds >= t.unknown_tool_warn:
                verdict = self._worse(
                    verdict,
                    self._report(
                        "unknown_tool",
                        "stuck" if rounds >= t.unknown_tool_stuck else "warn",
                        call.tool,
                        self._unknown_tools.numbers,
                        f"{rounds} calls in a row named a tool that does not exist.",
                        "the error: there is no such tool",
                        "a call of a tool that exists",
                    ),
                )
        rounds = answer.rounds - (t.nearly if answer.nearly else 0)
        same_error = rounds >= t.error_warn and self._standing_still(answer, t.error_novel)
        if same_error or (question.failures >= t.error_warn and question.worked_before == self._worked):
            failures = max(rounds, question.failures)
            verdict = self._worse(
                verdict,
                self._report(
                    "error_stall",
                    "stuck" if failures >= t.error_stuck else "warn",
                    call.tool,
                    answer.numbers if same_error else question.failure_numbers,
                    f"{call.tool} failed {failures} times with the same arguments.",
                    "the tool, its arguments, and that it failed",
                    "different arguments, a change of state before trying again, or a success",
                ),
            )
        rounds = self._errors.add_error(error, number, self._round)
        if rounds >= t.similar_errors_warn:
            verdict = self._worse(
                verdict,
                self._report(
                    "error_stall",
                    "stuck" if rounds >= t.similar_errors_stuck else "warn",
                    call.tool,
                    self._errors.numbers,
                    f"{rounds} calls in a row failed with nearly the same error, whatever was called.",
                    "the text of the error",
                    "a success, or an error of another kind",
                ),
            )
        return self._worse(verdict, self._cycle(call, answer))

    def _succeeded(
        self, call: ToolCall, question: Question, result: Evidence, changes: bool | None
    ) -> Verdict | None:
        seen = self.last
        first_ever = question.calls == 1
        same = question.exact == result.exact
        if not first_ever:
            seen.repeat_result = "unknown" if question.exact is None else "same" if same else "changed"
        self._worked += 1
        if changes and (first_ever or not same):
            # A new successful change: what was learnt before is out of date.
            self._epoch += 1
            self._forget_streaks()
            question.start_epoch(self._epoch)
        verdict = self._weak(call, question, result) if not same and question.calls > 1 else None
        if same:
            question.weak = 0
        answer, known = self._answer(call, question, result)
        question.exact = result.exact
        if question.in_round > 1:
            return self._parallel(call, question)
        tool = self._tool(call.tool)
        if known:
            if seen.repeat_result == "changed":
                seen.repeat_result = "same"
            seen.stale_calls = answer.rounds
            verdict = self._worse(verdict, self._stale(call, answer, changes))
        elif tool.exact != result.exact and not result.empty:
            self._novel += 1
            self._errors.end()
            self._unknown_tools.end()
        verdict = self._worse(verdict, self._same_whatever_asked(call, tool, result, changes, known))
        return self._worse(verdict, self._cycle(call, answer))

    def _answer(self, call: ToolCall, question: Question, result: Evidence) -> tuple[Answer, bool]:
        answer, known = question.answer(result, self.calls, self._round, self._novel)
        if known and answer.again(self.calls, self._round):
            self._pace(call, answer)
        answer.last_ended = call.ended if call.ended is not None else call.started
        return answer, known

    def _pace(self, call: ToolCall, answer: Answer) -> None:
        """Whether this repeat waited as polling does: longer than the time before, or long."""
        started = call.started if call.started is not None else call.ended
        if started is None or answer.last_ended is None:
            answer.paced = False
            answer.busy += 1
            return
        wait = max(0.0, started - answer.last_ended)
        before, answer.wait = answer.wait, wait
        if wait >= self._t.poll_patient_seconds:
            return
        if before is None:
            answer.busy += 1
        elif wait <= 0 or wait < before * self._t.poll_growth:
            answer.paced = False
            answer.busy += 1

    def _standing_still(self, answer: Answer, news_per_repeat: float) -> bool:
        """Whether hardly anything new was learnt since this answer was first given."""
        return self._novel - answer.novel_at_first <= news_per_repeat * answer.rounds

    # Rules

    def _stale(self, call: ToolCall, answer: Answer, changes: bool | None) -> Verdict | None:
        t = self._t
        rounds = answer.rounds
        if is_polling(call) or (answer.paced and answer.wait and changes is not True):
            return self._polling(call, answer)
        enough = rounds - (t.nearly if answer.nearly else 0)
        if enough < t.stale_warn:
            return None
        if not self._standing_still(answer, t.stale_novel):
            return None
        return self._report(
            "stale_repeat",
            "stuck" if enough >= t.stale_stuck else "warn",
            call.tool,
            answer.numbers,
            f"{call.tool} gave the same result {rounds} times for the same arguments while nothing changed.",
            "the tool, its arguments and its result",
            "a different result, or a new successful call that changes state",
        )

    def _polling(self, call: ToolCall, answer: Answer) -> Verdict | None:
        t = self._t
        stuck = answer.busy >= t.poll_stuck or answer.rounds >= t.poll_cap_stuck
        if not stuck and answer.busy < t.poll_warn and answer.rounds < t.poll_cap_warn:
            return None
        return self._report(
            "stale_repeat",
            "stuck" if stuck else "warn",
            call.tool,
            answer.numbers,
            f"{call.tool} was polled {answer.rounds} times without a change, {answer.busy} of them without waiting "
            "longer than before.",
            "the answer to the poll",
            "a different answer, or a longer wait before each poll",
        )

    def _weak(self, call: ToolCall, question: Question, result: Evidence) -> Verdict | None:
        t = self._t
        digitless = result.digitless
        if digitless is None or (question.digitless is not None and digitless != question.digitless):
            question.digitless = digitless
            question.weak = 0
            question.weak_numbers = []
            return None
        if not question.weak:
            question.weak = 1
        question.digitless = digitless
        question.weak += 1
        add_number(question.weak_numbers, self.calls)
        if question.weak < t.weak_warn or is_polling(call):
            return None
        return self._report(
            "repeat",
            "stuck" if question.weak >= t.weak_stuck else "warn",
            call.tool,
            question.weak_numbers,
            f"{call.tool} was called {question.weak} times with the same arguments and only digits of its result "
            "changed.",
            "the tool, its arguments and every word of its result",
            "a result with new words, or other arguments",
        )

    def _same_whatever_asked(
        self, call: ToolCall, tool: ToolStreaks, result: Evidence, changes: bool | None, known: bool
    ) -> Verdict | None:
        t = self._t
        same = tool.exact == result.exact
        tool.exact = result.exact
        if changes or is_polling(call):
            return None
        if result.empty:
            tool.same.end()
            rounds = tool.empty.add(self.calls, self._round)
            if rounds < t.empty_warn:
                return None
            return self._report(
                "empty_results",
                "stuck" if rounds >= t.empty_stuck else "warn",
                call.tool,
                tool.empty.numbers,
                f"{call.tool} found nothing {rounds} times in a row, with different arguments.",
                "the result: nothing",
                "a result that is not empty, or a call of another kind",
            )
        tool.empty.end()
        if not same:
            tool.same.end()
        if known or changes is None:
            return None
        rounds = tool.same.add(self.calls, self._round)
        if rounds < t.reworded_warn:
            return None
        return self._report(
            "stale_repeat",
            "stuck" if rounds >= t.reworded_stuck else "warn",
            call.tool,
            tool.same.numbers,
            f"{call.tool} gave one and the same result {rounds} times in a row for differently worded arguments.",
            "the tool and its result",
            "a different result, or a new successful call that changes state",
        )

    def _cycle(self, call: ToolCall, answer: Answer) -> Verdict | None:
        """A cycle of any order: every round of the last pass has been there as often as it takes."""
        t = self._t
        if answer.rounds - (t.nearly if answer.nearly else 0) < t.cycle_repetitions:
            self._deep = 0
            self._deep_round = self._round
            return None
        if self._deep_round != self._round:
            self._deep_round = self._round
            self._deep += 1
        period = answer.last_round - answer.previous_round
        if period < 2 or period > t.cycle_period or self._deep < period or is_polling(call):
            return None
        return self._report(
            "cycle",
            "stuck",
            call.tool,
            answer.numbers,
            f"{period} rounds came round {answer.rounds} times with the same results while nothing changed.",
            "the calls of the cycle and their results",
            "a call or a result that is new",
        )

    def _parallel(self, call: ToolCall, question: Question) -> Verdict | None:
        if question.in_round < self._t.parallel_warn or self._scope == "conversation":
            return None
        return self._report(
            "repeat",
            "warn",
            call.tool,
            list(range(self.calls - question.in_round + 1, self.calls + 1)),
            f"One model reply asked for {call.tool} {question.in_round} times with the same arguments.",
            "the tool and its arguments",
            "asking once",
        )

    # Verdicts

    @staticmethod
    def _worse(one: Verdict | None, other: Verdict | None) -> Verdict | None:
        if one is None or (other is not None and SEVERITY_RANK[other.severity] > SEVERITY_RANK[one.severity]):
            return other
        return one

    def _report(
        self,
        kind: Kind,
        severity: Severity,
        tool: str,
        numbers: list[int],
        reason: str,
        unchanged: str,
        clears: str,
    ) -> Verdict | None:
        rank = SEVERITY_RANK[severity]
        self.last.stuck = self.last.stuck or severity == "stuck"
        if self._reported.get((kind, tool), -1) >= rank:
            return None
        if len(self._reported) >= _MAX_TOOLS:
            return None
        self._reported[(kind, tool)] = rank
        verdict = Verdict(
            kind=kind,
            severity=severity,
            tool=tool,
            first_call=numbers[0],
            detected_call=max(1, self.calls),
            reason=reason,
            mode=self.mode,
            calls=tuple(numbers),
            unchanged=unchanged,
            clears=clears,
        )
        if self.verdict is None or rank > SEVERITY_RANK[self.verdict.severity]:
            self.verdict = verdict
        return verdict

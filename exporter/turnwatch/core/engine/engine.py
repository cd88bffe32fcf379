"""The engine: calls with their results in, verdicts out, one call at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from turnwatch.core.effects import asks_in_words, changes_state, is_polling, may_act, takes_note
from turnwatch.core.engine import blind, failing, polling, repeating, replies
from turnwatch.core.engine.asking_around import AskingAround
from turnwatch.core.engine.finding import Finding, worst
from turnwatch.core.engine.identity import default_volatile_keys, identity
from turnwatch.core.engine.memory import Answer, Memory, Question
from turnwatch.core.engine.root_turns import RootTurns
from turnwatch.core.engine.seen import Seen
from turnwatch.core.engine.streaks import Trouble
from turnwatch.core.engine.teammates import Teammates
from turnwatch.core.engine.thresholds import Thresholds
from turnwatch.core.engine.told import Told
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.verdict import Mode, Verdict, graver

_THRESHOLDS: Final = Thresholds()
_NOTHING: Final = Seen()  # the most frequent one, shared by all; see _noted()


class Engine:
    """Judges the calls of one turn, or with ``scope="conversation"`` those of one conversation.

    Time and memory per call do not grow with the number of calls. Not thread-safe: the turn's lock guards it.

    Args:
        scope: "conversation" counts in turns where a turn's engine counts in rounds; see ``begin_turn``.
        bound: How many different calls are remembered.
        thresholds: How often is too often.
        volatile_keys: Gives the argument names that do not count for a tool; the default ones when left out.

    Attributes:
        calls: Calls observed so far.
        verdict: The worst verdict so far.
        last: What the latest call was.
        thought: Seconds that the model took so far, as far as it is told: they are no waiting.
    """

    __slots__ = (
        "_acts",
        "_asking_around",
        "_blind",
        "_deep",
        "_deep_round",
        "_epoch",
        "_in_child_turn",
        "_memory",
        "_monologue",
        "_notes",
        "_novel",
        "_refrains",
        "_roots",
        "_round",
        "_round_id",
        "_t",
        "_teammates",
        "_told",
        "_trouble",
        "_turns_are_rounds",
        "_volatile_keys",
        "_with_arguments",
        "_with_results",
        "_worked",
        "calls",
        "last",
        "thought",
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
        self.calls = 0
        self.verdict: Verdict | None = None
        self.last = _NOTHING
        self.thought = 0.0
        self._t = thresholds or _THRESHOLDS
        self._turns_are_rounds = scope == "conversation"
        self._teammates = Teammates() if self._turns_are_rounds else None
        self._refrains = replies.Refrains() if self._turns_are_rounds else None
        self._volatile_keys = volatile_keys or default_volatile_keys
        self._with_arguments = False
        self._with_results = False
        self._memory = Memory(bound)
        # An epoch ends when state changes. News and successes are only ever compared with earlier counts of them.
        self._epoch = 0
        self._novel = self._worked = self._acts = 0
        self._round = 0
        self._round_id: int | None = None
        self._roots = RootTurns() if self._turns_are_rounds else None
        self._in_child_turn = False
        self._deep = 0
        self._deep_round = -1
        self._notes = 0  # in a row
        self._asking_around = AskingAround()
        # Most turns meet none of these.
        self._trouble: Trouble | None = None
        self._monologue: replies.Monologue | None = None
        self._blind: deque[tuple[int, int]] | None = None
        self._told: Told | None = None

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

    @property
    def remembered(self) -> int:
        """How many different calls are remembered."""
        return len(self._memory)

    def begin_turn(self, agent: str = "", *, child: bool = False) -> None:
        """Tell an engine of a conversation that a turn begins.

        A turn of the agent that also had the turn before means that a user spoke between them, and a user who
        asks the same again makes no stuck agent: all counts start again. A turn of another agent, or of a
        sub-agent, is a hand-off: nothing came in from outside, and repetition goes on counting, in turns.
        """
        self._round += 1
        self._in_child_turn = child
        if not child and self._roots is not None and self._roots.begin(agent):
            self._start_epoch()

    def adopted(self, agent: str) -> None:
        """Tell an engine of a conversation that a turn of this agent was a sub-agent's, which shows only now."""
        if self._roots is not None and self._roots.adopted(agent):
            self._start_epoch()

    def observe(self, call: ToolCall, agent: str = "") -> Verdict | None:
        """Judge one more call, when its result is known.

        Args:
            call: The call.
            agent: Whose call it is, for an engine of a conversation.

        Returns:
            A verdict when this call brought one that the turn did not have yet. It is never taken back.
        """
        self.calls += 1
        self.last = _NOTHING
        changes = changes_state(call)
        key = identity(call, changes, self._volatile_keys)
        if key is None:
            return None
        self._with_arguments = True
        self._notes = self._notes + 1 if takes_note(call) else 0
        # A note belongs to the work that it is about.
        if not self._turns_are_rounds and self._notes != 1 and (call.round is None or call.round != self._round_id):
            self._round_id = call.round
            self._round += 1
        self._monologue = None
        result = call.result
        if self._teammates is not None and self._teammates.looks_for_itself(key, agent):
            if result is not None and not result.empty and not self._memory.see(result.exact):
                self._news()
            return None
        question = self._memory.question(key, self._epoch, self.calls, self._round)
        if result is None and call.outcome in ("error", "denied"):
            result = Evidence.of(f"{call.outcome} {call.error_type or ''}")
        if question.calls > 1:
            seen = self._noted()
            if result is None or question.exact is None:
                seen.repeat_result = "unknown"
            else:
                seen.repeat_result = "same" if question.exact == result.exact else "changed"
        findings: list[Finding | None] = []
        if question.in_round >= self._t.parallel_warn and not self._turns_are_rounds:
            findings.append(repeating.parallel(call.tool, question, self._t))
        if result is None:
            question.exact = None
            self._without_result(call, key, question, findings)
        # A tool that begins by saying that it failed has failed, whatever the transport says.
        elif call.outcome == "error" or call.outcome == "denied" or result.failure:
            self._with_results = True
            self._failed(call, question, result, findings)
        else:
            self._with_results = True
            self._succeeded(call, question, result, changes, findings)
        return self._report(call.tool, findings) if any(findings) else None

    def observe_reply(self, text: Evidence, agent: str = "", turn: int = 0) -> Verdict | None:
        """Judge one more text reply of the model in which it made no tool call.

        Args:
            text: Evidence of the reply.
            agent: Whose reply it is, for an engine of a conversation.
            turn: A number of its turn, after whose end it may come.

        Returns:
            A verdict when this reply brought one that the turn did not have yet.
        """
        self.last = _NOTHING
        if text.empty or self._in_child_turn:
            return None
        number = max(1, self.calls)
        if self._refrains is not None:
            rounds = self._refrains.reply(text, agent, turn, self._novel + self._epoch)
        else:
            self._round += 1
            self._monologue = self._monologue or replies.Monologue()
            rounds = self._monologue.reply(text, number, self._round)
        found = replies.monologue(rounds, number, self._t)
        return self._report("", [found]) if found is not None else None

    def _noted(self) -> Seen:
        """What the latest call was, to write to."""
        if self.last is _NOTHING:
            self.last = Seen()
        return self.last

    # How a call can end

    def _without_result(self, call: ToolCall, key: int, question: Question, findings: list[Finding | None]) -> None:
        if question.in_round > 1:
            return
        if self._blind is None:
            self._blind = deque(maxlen=self._t.blind_window)
        self._blind.append((key, self.calls))
        if question.calls >= self._t.blind_in_a_row and not is_polling(call):
            findings.append(blind.without_results(call.tool, key, self._blind, self._t))

    def _failed(self, call: ToolCall, question: Question, error: Evidence, findings: list[Finding | None]) -> None:
        t, tool, number = self._t, call.tool, self.calls
        self._acts += 1
        answer = self._answer(call, question, error)
        question.history.fail(number, self._round, self._worked)
        question.history.fail_alike(error, number, new_round=question.in_round == 1)
        trouble = self._trouble = self._trouble or Trouble()
        trouble.errors.add_error(error, call, number, self._round)
        if error.names_unknown_tool:
            trouble.unknown_tools.add(number, self._round)
            findings.append(failing.unknown_tools(trouble.unknown_tools, t))
        else:
            trouble.unknown_tools.end()
        still = self._stands_still(answer.novel_at_first, answer.rounds, t.error_novel)
        findings.append(failing.same_call_fails(tool, question, answer, still, t))
        findings.append(failing.futile(tool, question, t))
        findings.append(failing.similar_errors(trouble.errors, t))
        self._note_news(self._memory.see(error.normal), findings)
        self._round_trip(answer, findings)

    def _succeeded(
        self,
        call: ToolCall,
        question: Question,
        result: Evidence,
        changes: bool | None,
        findings: list[Finding | None],
    ) -> None:
        t = self._t
        note = self._notes > 0
        self._worked += not note
        first = question.calls == 1
        waits = is_polling(call) if first else polling.goes_on(call, changes, result)
        self._acts += not (waits or note)
        if self.last.repeat_result == "changed" and not waits:
            question.history.change_digits(result.digitless, self.calls, is_second=question.calls == 2)
            findings.append(repeating.weak(call.tool, question, t))
        changed = changes is True and (first or question.is_changed_by(result))
        if changed:
            # A new successful change: what was learnt before is out of date. Doing the same again is no new one.
            self._start_epoch()
            question.start_epoch(self._epoch)
        seen_before = self._memory.see(result.exact)
        news = not (seen_before or result.empty or note)
        if first:
            if news:
                self._news()
            at = polling.answered_at(call, self.thought)
            question.answer_first(result.exact, self._novel, at, self._acts)
            known = False
        else:
            history = question.history
            before = history.latest
            answer = self._answer(call, question, result, waits)
            if answer is before and not answer.nearly and self.last.repeat_result == "changed":
                self._noted().repeat_result = "same"  # by all but durations, dates and the like
            known = len(answer.numbers) > 1
            if self._notes == 1:  # other work between makes it another note
                answer.rounds = 1
                known = False
            news = news and not known and history.weak < 3  # a row of results that differ in a number is none
            if news:
                self._news()
            if not known:
                answer.novel_at_first = self._novel
        # What may have been done in silence is nothing that was looked for and not found.
        mute = changes or (not news and result.silent and may_act(call))
        if not mute:
            number, round_ = self.calls, self._round
            findings.append(self._asking_around.observe(call, result, known, number, round_, self._novel, t))
        if known:
            patient = waits or (answer.paced and answer.wait is not None and not changes)
            polled = polling.polled(call.tool, answer, t) if patient else None
            still = self._stands_still(answer.novel_at_first, answer.rounds, t.stale_novel)
            if not answer.nearly and question.in_round == 1:
                # What is meant to be asked again is one round until it is stuck, or every third poll would page.
                waiting = waits and (polled is None or polled.severity != "stuck")
                self._noted().stale_calls = answer.rounds if still and not waiting else 1
            if patient:
                findings.append(polled)
                return
            if still:
                findings.append(repeating.stale(call.tool, answer, t))
        if not news and not changed and (known or (not mute and asks_in_words(call))):
            self._note_news(seen_before, findings)
        if not first:
            findings.append(failing.ends_badly(call.tool, question, result, self.calls, t))
            if known or not note:
                self._round_trip(answer, findings)

    # What they share

    def _start_epoch(self) -> None:
        self._epoch += 1
        self._asking_around.clear()
        self._trouble = None
        self._blind = None
        self._deep = 0

    def _news(self) -> None:
        self._novel += 1
        self._deep = 0
        self._trouble = None

    def _note_news(self, seen_before: int, findings: list[Finding | None]) -> None:
        """A result that was not seen lately is news; a second look is neither news nor going in circles."""
        if not seen_before:
            if self._trouble is not None:
                self._trouble.no_news.end()
        elif seen_before > 1:
            trouble = self._trouble = self._trouble or Trouble()
            trouble.no_news.add(self.calls, self._round)
            findings.append(repeating.no_news(trouble.no_news, self._t))

    def _answer(self, call: ToolCall, question: Question, result: Evidence, waits: bool = False) -> Answer:
        answer = question.answer(result, self.calls, self._round, self._novel)
        again = answer.numbers[-1] != self.calls and answer.again(self.calls, self._round)
        polling.note_pace(call, answer, waits, again, self._acts, self.thought, self._t)
        return answer

    def _stands_still(self, novel_at_first: int, rounds: int, news_per_round: float) -> bool:
        """Whether hardly anything new was learnt since a pattern of so many rounds began."""
        # Over turns any news is progress: workers that begin alike and then find something are no loop.
        return self._novel - novel_at_first <= (0 if self._turns_are_rounds else news_per_round * rounds)

    def _round_trip(self, answer: Answer, findings: list[Finding | None]) -> None:
        t = self._t
        if answer.rounds - (t.nearly if answer.nearly else 0) < t.cycle_repetitions:
            self._deep = 0
            self._deep_round = self._round
            return
        if self._deep_round != self._round:
            self._deep_round = self._round
            self._deep += 1
        findings.append(repeating.cycle(answer, self._deep, t))

    def _report(self, tool: str, findings: list[Finding | None]) -> Verdict | None:
        found = worst([finding for finding in findings if finding is not None])
        if found is None:
            return None
        if found.severity == "stuck":
            self._noted().stuck = True
        self._told = self._told or Told()
        if not self._told.is_news(found, tool, (self._epoch, self._novel)):
            return None
        verdict = Verdict(
            kind=found.kind,
            severity=found.severity,
            tool=tool,
            first_call=found.numbers[0],
            detected_call=max(1, self.calls),
            reason=found.reason,
            mode=self.mode,
            calls=tuple(found.numbers),
            unchanged=found.unchanged,
            clears=found.clears,
        )
        self.verdict = graver(self.verdict, verdict)
        return verdict

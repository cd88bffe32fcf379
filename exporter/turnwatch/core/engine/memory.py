"""What was asked and answered before in this turn, in bounded memory."""

from __future__ import annotations

from typing import Final

from turnwatch.core.evidence import Digest, Evidence, same_page

# An answer that keeps changing fills a call's table; only the recent answers can come round again.
_MAX_ANSWERS: Final = 16
_MAX_NUMBERS: Final = 16
# Twice the longest cycle: what comes round less often than that may be a stream that happens to repeat.
_MAX_RESULTS: Final = 24


class Answer:
    """One call with one result, since state last changed.

    Attributes:
        rounds: In how many rounds it was seen.
        numbers: The numbers of its calls (bounded).
        last_round, previous_round: When it was last seen, and the time before.
        novel_at_first: How much news there had been when it was first seen.
        nearly: Whether some of its results were only nearly the same (by simhash).
        asked_at, acts: When the agent last had its answer, and how many acts of the turn there had been.
        wait: How long it then waited before asking again; None when it did other work, or times are not known.
        paced: Whether it has waited longer each time, as polling does.
        busy: Rounds that came sooner than polling should.
    """

    __slots__ = (
        "acts",
        "asked_at",
        "busy",
        "last_round",
        "nearly",
        "novel_at_first",
        "numbers",
        "paced",
        "previous_round",
        "rounds",
        "simhash",
        "wait",
    )

    def __init__(self, number: int, round_: int, novel: int) -> None:
        self.rounds = 1
        self.numbers = [number]
        self.last_round = round_
        self.previous_round = round_
        self.novel_at_first = novel
        self.nearly = False
        self.simhash: int | None = None
        self.asked_at: float | None = None
        self.acts = 0
        self.wait: float | None = None
        self.paced = True
        self.busy = 1

    def again(self, number: int, round_: int) -> bool:
        """Note one more call; whether it is in a new round."""
        add_number(self.numbers, number)
        if round_ == self.last_round:
            return False
        self.previous_round = self.last_round
        self.last_round = round_
        self.rounds += 1
        return True


class History:
    """What a call that was made again, or failed, was answered over time.

    Attributes:
        answers: Its answers in this epoch, by exact or normalised digest; None while there is only the first.
        latest: The latest of them.
        round_numbers: The numbers of its calls in the present round, where there are several.
        failures: How often in a row it failed, nothing at all having worked between.
        futile: How often in a row it failed with the same text, whatever was changed between.
        weak: How often in a row only digits of its result changed.
    """

    __slots__ = (
        "answers",
        "digitless",
        "failure_numbers",
        "failure_round",
        "failures",
        "futile",
        "futile_error",
        "futile_numbers",
        "latest",
        "round_numbers",
        "weak",
        "weak_numbers",
        "worked_before",
    )

    def __init__(self) -> None:
        self.answers: dict[Digest, Answer] | None = None
        self.latest: Answer | None = None
        self.round_numbers: list[int] = []
        self.failures = 0
        self.futile = 0
        self.weak = 0

    def start_epoch(self) -> None:
        """Forget the answers: state has changed since."""
        self.answers = None
        self.latest = None
        self.failures = 0
        self.weak = 0

    def fail(self, number: int, round_: int, worked: int) -> None:
        """Note a failure, ``worked`` calls having worked so far in the turn."""
        if not self.failures or self.worked_before != worked:
            self.worked_before: int = worked
            self.failures = 0
            self.failure_round: int = -1
            self.failure_numbers: list[int] = []
        if self.failure_round != round_:
            self.failure_round = round_
            self.failures += 1
        add_number(self.failure_numbers, number)

    def fail_alike(self, error: Evidence, number: int, *, new_round: bool) -> None:
        """Note what the failure said."""
        if not self.futile or self.futile_error != error.normal:
            self.futile = 0
            self.futile_error: Digest = error.normal
            self.futile_numbers: list[int] = []
        if new_round:
            self.futile += 1
        add_number(self.futile_numbers, number)

    def change_digits(self, digitless: Digest | None, number: int, *, is_second: bool) -> None:
        """Note another result, of which maybe only the digits changed."""
        if digitless is None:
            self.weak = 0
        elif not self.weak or self.digitless != digitless:
            # The result before this one was not looked at; it may well have been the first of them.
            self.weak = 2 if is_second else 1
            self.digitless: Digest = digitless
            self.weak_numbers: list[int] = [number]
        else:
            self.weak += 1
            add_number(self.weak_numbers, number)


class Question:
    """One call (tool and arguments) and what it was answered.

    Most calls are made once and work: of those no more is kept than a second call is compared with.

    Attributes:
        calls: How often it was asked in this turn.
        round, in_round: The present round, and how often it was asked in that.
        number: The number of its first call in the present round.
        epoch: The state epoch to which the answers belong.
        exact: Digest of its latest result; None before the first, and when that is not known.
    """

    __slots__ = ("_acts", "_at", "_history", "_novel", "calls", "epoch", "exact", "in_round", "number", "round")

    def __init__(self, epoch: int, number: int, round_: int) -> None:
        self.epoch = epoch
        self.calls = 1
        self.round = round_
        self.in_round = 1
        self.number = number
        self.exact: Digest | None = None
        self._novel = -1  # of the first answer, as long as that is the only one
        self._at: float | None = None
        self._acts = 0
        self._history: History | None = None

    @property
    def history(self) -> History:
        """What came of its calls, but for the first one that worked."""
        history = self._history
        if history is None:
            history = self._history = History()
            if self._novel >= 0:
                assert self.exact is not None
                history.latest = Answer(self.number, self.round, self._novel)
                history.latest.asked_at = self._at
                history.latest.acts = self._acts
                history.answers = {self.exact: history.latest}
        return history

    @property
    def round_numbers(self) -> list[int]:
        """The numbers of its calls in the present round (bounded)."""
        return self.history.round_numbers if self.in_round > 1 else [self.number]

    def ask_again(self, number: int, round_: int) -> None:
        """Note that it is asked once more."""
        history = self.history
        self.calls += 1
        if self.round != round_:
            self.round = round_
            self.in_round = 1
            self.number = number
            return
        self.in_round += 1
        if self.in_round == 2:
            history.round_numbers = [self.number]
        add_number(history.round_numbers, number)

    def start_epoch(self, epoch: int) -> None:
        """Forget the answers: state has changed since."""
        self.epoch = epoch
        if self._history is not None:
            self._history.start_epoch()

    def answer_first(self, exact: Digest, novel: int, at: float | None, acts: int) -> None:
        """Note what its first call was answered, as cheaply as can be."""
        self.exact = exact
        self._novel = novel
        self._at = at
        self._acts = acts

    def answer(self, result: Evidence, number: int, round_: int, novel: int) -> Answer:
        """The answer that this result is: one that was there before, or a new one."""
        history = self.history
        answers = history.answers
        if answers is None:
            answers = history.answers = {}
        found = answers.get(result.exact)
        if found is None and self.exact is None:
            # What costs time (is the difference one that matters?) waits until the call is made again.
            found = answers[result.exact] = Answer(number, round_, novel)
        elif found is None:
            found = answers.get(result.normal)
            if found is None and _is_same_page(history.latest, result):
                found = history.latest
            if found is None:
                found = Answer(number, round_, novel)
                found.simhash = result.simhash
            if len(answers) >= _MAX_ANSWERS:
                del answers[next(iter(answers))]
            answers[result.normal] = found
        elif found is not history.latest:
            # Of the first answer no more was kept than the digest of its text. Now that it is there again, it may turn
            # out to be the one that came after it.
            twin = answers.get(result.normal)
            if twin is None and found.simhash is None and _is_same_page(history.latest, result):
                twin = history.latest
            if twin is not None and twin is not found:
                twin.rounds += found.rounds
                twin.busy += found.busy
                twin.numbers[:0] = found.numbers
                twin.novel_at_first = found.novel_at_first
                found = answers[result.exact] = twin
        history.latest = found
        self.exact = result.exact
        return found

    def is_changed_by(self, result: Evidence) -> bool:
        """Whether this result, by more than digits and ids, is another than this call had lately."""
        history = self.history
        if self.exact is None or self.exact == result.exact or history.weak > 1:
            return False
        # Against a single result before it, another text is enough: there is no row yet that it could be part of.
        return self.calls == 2 or not (history.answers and result.normal in history.answers)


def _is_same_page(answer: Answer | None, result: Evidence) -> bool:
    """Whether a result is nearly this answer, which then notes it. In a short text every word and number tells."""
    if answer is None or result.whole is not None or not same_page(answer.simhash, result.simhash):
        return False
    answer.nearly = True
    return True


class Memory:
    """Questions by key; past the bound the oldest asked only once goes first, then the one asked longest ago.

    Beside them the latest different results, whatever was asked.

    Attributes:
        dropped: How many questions were forgotten.
    """

    __slots__ = ("_bound", "_once", "_repeated", "_results", "dropped")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._once: dict[int, Question] = {}
        self._repeated: dict[int, Question] | None = None  # most turns repeat nothing
        self._results: dict[Digest, int] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._once) + len(self._repeated or ())

    def question(self, key: int, epoch: int, number: int, round_: int) -> Question:
        """The question with this key, asked once more or for the first time."""
        once, repeated = self._once, self._repeated
        question = repeated.pop(key, None) if repeated else None
        if question is None:
            question = once.pop(key, None)
            if question is None:
                question = once[key] = Question(epoch, number, round_)
                if len(once) + (len(repeated) if repeated else 0) > self._bound:
                    self._drop()
                return question
            if repeated is None:
                repeated = self._repeated = {}
        assert repeated is not None
        repeated[key] = question  # last in line
        question.ask_again(number, round_)
        if question.epoch != epoch:
            question.start_epoch(epoch)
        return question

    def _drop(self) -> None:
        self.dropped += 1
        # The newest singleton is the question being asked: it stays.
        questions = self._once if len(self._once) > 1 or not self._repeated else self._repeated
        del questions[next(iter(questions))]

    def see(self, digest: Digest) -> int:
        """How often this result was seen lately before now."""
        results = self._results
        before = results.pop(digest, 0)
        results[digest] = before + 1
        if not before and len(results) > _MAX_RESULTS:
            del results[next(iter(results))]
        return before


def add_number(numbers: list[int], number: int) -> None:
    """Add a call number to a list that keeps its first and its latest members."""
    numbers.append(number)
    if len(numbers) > _MAX_NUMBERS:
        del numbers[1]

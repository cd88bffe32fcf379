"""What was asked and answered before in this turn, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
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


class Question:
    """One call (tool and arguments) and what it was answered.

    Most calls are made once, so what only a second call needs is set up at the second call.

    Attributes:
        calls: How often it was asked in this turn.
        in_round: How often it was asked in the present round.
        epoch: The state epoch to which the answers belong.
        exact: Digest of its latest result; None before the first, and when that is not known.
        answers: Its answers in this epoch, by exact or normalised digest; None while there is only the first.
        failures: How often in a row it failed, nothing at all having worked between.
        futile: How often in a row it failed with the same text, whatever was changed between.
        weak: How often in a row only digits of its result changed.
    """

    __slots__ = (
        "answers",
        "calls",
        "digitless",
        "epoch",
        "exact",
        "failure_numbers",
        "failure_round",
        "failures",
        "first",
        "futile",
        "futile_error",
        "futile_numbers",
        "in_round",
        "latest",
        "round",
        "round_numbers",
        "weak",
        "weak_numbers",
        "worked_before",
    )

    def __init__(self, epoch: int, number: int, round_: int) -> None:
        self.epoch = epoch
        self.calls = 1
        self.round = round_
        self.in_round = 1
        self.round_numbers: tuple[int, ...] | list[int] = (number,)
        self.exact: Digest | None = None
        self.first: tuple[Digest, int, int, int, float | None, int] | None = None
        self.answers: dict[Digest, Answer] | None = None
        self.latest: Answer | None = None
        self.failures = 0
        self.futile = 0
        self.weak = 0

    def ask_again(self, number: int, round_: int) -> None:
        """Note that it is asked once more."""
        self.calls += 1
        if self.round != round_:
            self.round = round_
            self.in_round = 1
            self.round_numbers = (number,)
            return
        self.in_round += 1
        numbers = self.round_numbers = list(self.round_numbers)
        add_number(numbers, number)

    def start_epoch(self, epoch: int) -> None:
        """Forget the answers: state has changed since."""
        self.epoch = epoch
        self.first = None
        self.answers = None
        self.latest = None
        self.failures = 0
        self.weak = 0

    def answer_first(self, exact: Digest, number: int, round_: int, novel: int, at: float | None, acts: int) -> None:
        """Note its first answer in this epoch, as cheaply as can be."""
        self.exact = exact
        self.first = (exact, number, round_, novel, at, acts)

    def answer(self, result: Evidence, number: int, round_: int, novel: int) -> Answer:
        """The answer that this result is: one that was there before, or a new one."""
        answers = self.answers
        if answers is None:
            answers = self.answers = {}
            if self.first is not None:
                exact, first_number, first_round, first_novel, at, acts = self.first
                self.latest = answers[exact] = Answer(first_number, first_round, first_novel)
                self.latest.asked_at = at
                self.latest.acts = acts
        found = answers.get(result.exact)
        if found is None and self.exact is None:
            # What costs time (is the difference one that matters?) waits until the call is made again.
            found = answers[result.exact] = Answer(number, round_, novel)
        elif found is None:
            found = answers.get(result.normal)
            if found is None and self.latest is not None and same_page(self.latest.simhash, result.simhash):
                found = self.latest
                found.nearly = True
            if found is None:
                found = Answer(number, round_, novel)
                found.simhash = result.simhash
            if len(answers) >= _MAX_ANSWERS:
                del answers[next(iter(answers))]
            answers[result.normal] = found
        self.latest = found
        self.exact = result.exact
        return found

    def is_changed_by(self, result: Evidence) -> bool:
        """Whether this result, by more than digits and ids, is another than this call had lately."""
        if self.exact == result.exact or self.weak > 1:
            return False
        return self.exact is not None and not (self.answers and result.normal in self.answers)

    def fail(self, number: int, round_: int, worked: int) -> int:
        """Note a failure; how often in a row it failed, ``worked`` calls having worked so far in the turn."""
        if not self.failures or self.worked_before != worked:
            self.worked_before: int = worked
            self.failures = 0
            self.failure_round: int = -1
            self.failure_numbers: list[int] = []
        if self.failure_round != round_:
            self.failure_round = round_
            self.failures += 1
        add_number(self.failure_numbers, number)
        return self.failures

    def fail_alike(self, error: Evidence, number: int) -> int:
        """Note a failure; how often in a row it was this one."""
        if not self.futile or self.futile_error != error.normal:
            self.futile = 0
            self.futile_error: Digest = error.normal
            self.futile_numbers: list[int] = []
        if self.in_round == 1:
            self.futile += 1
        add_number(self.futile_numbers, number)
        return self.futile

    def change_digits(self, digitless: Digest | None, number: int) -> int:
        """Note another result; how often in a row only its digits changed."""
        if digitless is None:
            self.weak = 0
        elif not self.weak or self.digitless != digitless:
            # The result before this one was not looked at; it may well have been the first of them.
            self.weak = 2 if self.calls == 2 else 1
            self.digitless: Digest = digitless
            self.weak_numbers: list[int] = [number]
        else:
            self.weak += 1
            add_number(self.weak_numbers, number)
        return self.weak


class Memory:
    """Questions by key; past the bound the oldest asked only once goes first, then the one asked longest ago.

    Attributes:
        dropped: How many questions were forgotten.
    """

    __slots__ = ("_bound", "_once", "_repeated", "dropped")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._once: OrderedDict[int, Question] = OrderedDict()
        self._repeated: OrderedDict[int, Question] = OrderedDict()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._once) + len(self._repeated)

    def question(self, key: int, epoch: int, number: int, round_: int) -> Question:
        """The question with this key, asked once more or for the first time."""
        question = self._once.pop(key, None)
        if question is not None:
            self._repeated[key] = question
        else:
            question = self._repeated.get(key)
            if question is None:
                question = self._once[key] = Question(epoch, number, round_)
                if len(self._once) + len(self._repeated) > self._bound:
                    self._drop()
                return question
            self._repeated.move_to_end(key)
        question.ask_again(number, round_)
        if question.epoch != epoch:
            question.start_epoch(epoch)
        return question

    def _drop(self) -> None:
        self.dropped += 1
        # The newest singleton is the question being asked: it stays.
        (self._once if len(self._once) > 1 else self._repeated).popitem(last=False)


class Results:
    """How often each of the latest different results was seen, whatever was asked."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: OrderedDict[Digest, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def see(self, digest: Digest) -> int:
        """How often this result was seen lately before now."""
        before = self._seen.pop(digest, 0)
        self._seen[digest] = before + 1
        if not before and len(self._seen) > _MAX_RESULTS:
            self._seen.popitem(last=False)
        return before


def add_number(numbers: list[int], number: int) -> None:
    """Add a call number to a list that keeps its first and its latest members."""
    numbers.append(number)
    if len(numbers) > _MAX_NUMBERS:
        del numbers[1]

"""What was asked and answered before in this turn, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from turnwatch.core.evidence import Digest, Evidence, same_page

# An answer that keeps changing fills a call's table; only the recent answers can come round again.
_MAX_ANSWERS: Final = 16
_MAX_NUMBERS: Final = 16


class Answer:
    """One call with one result, since state last changed.

    Attributes:
        rounds: In how many rounds it was seen.
        numbers: The numbers of its calls; the first and the latest ones when there are many.
        last_round, previous_round: When it was last seen, and the time before.
        novel_at_first: How much news there had been when it was first seen.
        nearly: Whether some of its results were only nearly the same (by simhash).
        wait, paced: How long the agent waited before asking again, and whether every wait was a polling one.
        busy: Rounds that came sooner than polling should.
    """

    __slots__ = (
        "busy",
        "last_ended",
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
        self.last_ended: float | None = None
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

    Attributes:
        calls: How often it was asked in this turn.
        epoch: The state epoch to which the rest belongs.
        exact: Digest of its latest result.
        failures: Rounds in which it failed, one after the other, nothing having worked between them.
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
        "in_round",
        "latest",
        "round",
        "weak",
        "weak_numbers",
        "worked_before",
    )

    def __init__(self, epoch: int, round_: int) -> None:
        self.calls = 0
        self.round = round_
        self.in_round = 0
        self.exact: Digest | None = None
        self.digitless: Digest | None = None
        self.worked_before = -1
        self.weak = 0
        self.weak_numbers: list[int] = []
        self.answers: dict[Digest, Answer] = {}
        self.latest: Answer | None = None
        self.start_epoch(epoch)

    def start_epoch(self, epoch: int) -> None:
        """Forget the answers: state has changed since."""
        self.epoch = epoch
        self.answers.clear()
        self.latest = None
        self.failures = 0
        self.failure_round = -1
        self.failure_numbers: list[int] = []


    def answer(self, result: Evidence, number: int, round_: int, novel: int) -> tuple[Answer, bool]:
        """The answer that this result is, and whether it was there before."""
        answers = self.answers
        found = answers.get(result.exact)
        if found is not None:
            self.latest = found
            return found, True
        if self.exact is None:
            self.latest = answers[result.exact] = Answer(number, round_, novel)
            return self.latest, False
        # Only now is it worth the time to see whether the difference matters.
        found = answers.get(result.normal)
        if found is None and self.latest is not None and same_page(self.latest.simhash, result.simhash):
            found = self.latest
            found.nearly = True
        known = found is not None
        if found is None:
            found = Answer(number, round_, novel)
            found.simhash = result.simhash
        if len(answers) >= _MAX_ANSWERS:
            del answers[next(iter(answers))]
        answers[result.normal] = found
        self.latest = found
        return found, known


class Memory:
    """Questions by key; past the bound the oldest asked only once goes first, then the one asked longest ago.

    Attributes:
        dropped: How many questions were forgotten.
    """

    __slots__ = ("_bound", "_once", "_repeated", "dropped")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._once: OrderedDict[object, Question] = OrderedDict()
        self._repeated: OrderedDict[object, Question] = OrderedDict()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._once) + len(self._repeated)

    def ask(self, key: object, epoch: int, round_: int) -> Question:
        """The question with this key, made when it is new."""
        question = self._repeated.get(key)
        if question is not None:
            self._repeated.move_to_end(key)
        else:
            question = self._once.pop(key, None)
            if question is None:
                question = self._once[key] = Question(epoch, round_)
                if len(self) > self._bound:
                    self._drop()
                return question
            self._repeated[key] = question
        if question.epoch != epoch:
            question.start_epoch(epoch)
        return question

    def _drop(self) -> None:
        self.dropped += 1
        # The newest singleton is the question being asked: it stays.
        (self._once if len(self._once) > 1 else self._repeated).popitem(last=False)


def add_number(numbers: list[int], number: int) -> None:
    """Add a call number to a list that keeps its first and its latest members."""
    numbers.append(number)
    if len(numbers) > _MAX_NUMBERS:
        del numbers[1]

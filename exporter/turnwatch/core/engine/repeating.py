"""Does it go round in circles?"""

from __future__ import annotations

from turnwatch.core.engine.finding import Finding, severity
from turnwatch.core.engine.memory import Answer, Question, add_number
from turnwatch.core.engine.streaks import Streak
from turnwatch.core.engine.thresholds import Thresholds


def stale(tool: str, answer: Answer, t: Thresholds) -> Finding | None:
    """The same call with the same result, hardly anything new in between."""
    found = severity(answer.rounds - (t.nearly if answer.nearly else 0), t.stale_warn, t.stale_stuck)
    return found and Finding(
        "stale_repeat",
        found,
        answer.numbers,
        f"{tool} gave {'nearly ' if answer.nearly else ''}the same result {answer.rounds} times for the same "
        "arguments while nothing changed.",
        "the tool, its arguments and its result",
        "a different result, or a new successful call that changes state",
    )


def weak(tool: str, question: Question, t: Thresholds) -> Finding | None:
    """The same call with results that differ in digits only: a clock, a counter, an age."""
    history = question.history
    found = severity(history.weak, t.weak_warn, t.weak_stuck)
    return found and Finding(
        "repeat",
        found,
        history.weak_numbers,
        f"{tool} was called {history.weak} times with the same arguments and only digits of its result changed.",
        "the tool, its arguments and every word of its result",
        "a result with new words, or other arguments",
    )


def cycle(answer: Answer, deep_rounds: int, t: Thresholds) -> Finding | None:
    """A cycle in any order: every round of its last pass has been there as often as it takes.

    Args:
        answer: The latest one.
        deep_rounds: How many rounds in a row, the present one included, had been there that often.
        t: The thresholds.
    """
    period = answer.last_round - answer.previous_round
    if not 2 <= period <= min(t.cycle_period, deep_rounds):
        return None
    # The call at hand ends a pass, so the first pass began one pass before this call's first time, less one call.
    calls_per_pass = answer.numbers[-1] - answer.numbers[-2]
    start = max(1, answer.numbers[0] - calls_per_pass + 1)
    numbers: list[int] = [start]
    for number in range(max(start + 1, answer.numbers[-1] - 2 * calls_per_pass + 1), answer.numbers[-1] + 1):
        add_number(numbers, number)
    return Finding(
        "cycle",
        "stuck",
        numbers,
        f"The same {period} rounds came round {answer.rounds} times with the same results while nothing changed.",
        "the calls of the cycle and their results",
        "a call or a result that is new",
    )


def no_news(streak: Streak, t: Thresholds) -> Finding | None:
    """Nothing new for long, whatever was called."""
    found = severity(streak.rounds, t.no_news_warn, t.no_news_stuck)
    return found and Finding(
        "cycle",
        found,
        streak.numbers,
        f"{streak.rounds} rounds without news brought results that had been seen at least twice just before.",
        "the results: each of them had been seen twice before",
        "a result that is new, or a new successful call that changes state",
    )


def parallel(tool: str, question: Question, t: Thresholds) -> Finding | None:
    """Identical calls within one round: not a loop, but work done twice."""
    if question.in_round < t.parallel_warn:
        return None
    return Finding(
        "repeat",
        "warn",
        question.round_numbers,
        f"One model reply asked for {tool} {question.in_round} times with the same arguments.",
        "the tool and its arguments",
        "asking once",
    )

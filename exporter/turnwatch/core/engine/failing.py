"""Does it keep failing?"""

from __future__ import annotations

from turnwatch.core.engine.finding import Finding, severity
from turnwatch.core.engine.memory import Answer, Question
from turnwatch.core.engine.streaks import ErrorStreak, Streak
from turnwatch.core.engine.thresholds import Thresholds
from turnwatch.core.evidence import Evidence


def unknown_tools(streak: Streak, t: Thresholds) -> Finding | None:
    """Calls of tools that do not exist, in a row."""
    found = severity(streak.rounds, t.unknown_tool_warn, t.unknown_tool_stuck)
    return found and Finding(
        "unknown_tool",
        found,
        streak.numbers,
        f"{streak.rounds} calls in a row named a tool that does not exist.",
        "the error: there is no such tool",
        "a call of a tool that exists",
    )


def same_call_fails(
    tool: str, question: Question, answer: Answer, standing_still: bool, t: Thresholds
) -> Finding | None:
    """The same call fails: with the same text and hardly any news between, or with any and nothing working between.

    The second is the rule of OpenHands' stuck detector. Who waits longer before each attempt has more of them.
    """
    same_text = answer.rounds - (t.nearly if answer.nearly else 0) if standing_still else 0
    history = question.history
    failures = max(same_text, history.failures)
    backs_off = answer.paced and answer.wait is not None
    warn, stuck = (t.futile_warn, t.futile_stuck) if backs_off else (t.error_warn, t.error_stuck)
    found = severity(failures, warn, stuck)
    return found and Finding(
        "error_stall",
        found,
        answer.numbers if same_text >= history.failures else history.failure_numbers,
        f"{tool} failed {failures} times with the same arguments.",
        "the tool, its arguments, and that it failed",
        "other arguments, a change of state before trying again, or a success",
    )


def futile(tool: str, question: Question, t: Thresholds) -> Finding | None:
    """The same call fails with the same text whatever is changed between."""
    history = question.history
    found = severity(history.futile, t.futile_warn, t.futile_stuck)
    return found and Finding(
        "error_stall",
        found,
        history.futile_numbers,
        f"{tool} failed {history.futile} times in a row with the same error, whatever was changed between.",
        "the tool, its arguments and its error",
        "a success, or an error with another text",
    )


def ends_badly(tool: str, question: Question, result: Evidence, number: int, t: Thresholds) -> Finding | None:
    """The same, where the failure is a command's and its tool only passes on what it said and its exit code."""
    if not result.exited_badly:
        question.history.futile = 0
        return None
    question.history.fail_alike(result, number, new_round=question.in_round == 1)
    return futile(tool, question, t)


def similar_errors(streak: ErrorStreak, t: Thresholds) -> Finding | None:
    """Errors of nearly the same text, whatever is called."""
    longest = streak if streak.rounds >= streak.in_a_row.rounds else streak.in_a_row
    found = severity(longest.rounds, t.similar_errors_warn, t.similar_errors_stuck)
    return found and Finding(
        "error_stall",
        found,
        longest.numbers,
        f"{longest.rounds} calls failed with nearly the same error, whatever was called.",
        "the text of the error",
        "a result that is new, or errors of another kind",
    )

"""How often is too often. docs/detection.md says how each number was chosen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Numbers of the rules; each counts rounds (parallel calls of one model reply are one) unless it says calls.

    Attributes:
        stale_warn, stale_stuck: The same call with the same result.
        stale_novel: New answers per repeat that still count as standing still.
        nearly: Rounds that it takes more where the results are only nearly the same.
        error_warn, error_stuck: The same call with any error.
        error_novel: New answers per repeat that still count as standing still, where the repeat is an error.
        futile_warn, futile_stuck: The same call with the same error, whatever was changed between, or with any error if
            it waits longer before each attempt.
        cycle_repetitions: Passes of a cycle.
        cycle_period: Longest cycle, in rounds.
        no_news_warn, no_news_stuck: Rounds without news whose results had been seen twice before.
        similar_errors_warn, similar_errors_stuck: Errors of nearly the same text in a row, whatever the call.
        unknown_tool_warn, unknown_tool_stuck: Calls of tools that do not exist, in a row.
        empty_warn, empty_stuck: Different calls of one tool that all found nothing, in a row.
        reworded_novel: New answers per such call that still count as standing still; each may be one in another order.
        reworded_warn, reworded_stuck: Different reading calls of one tool with one and the same result, in a row.
        weak_warn, weak_stuck: The same call with a result of which only digits change.
        parallel_warn: Identical calls within one round, in calls.
        blind_window, blind_in_window, blind_in_a_row: Identical calls when results are not known.
        poll_warn, poll_stuck: Unchanged answers to a polling call that does not wait longer each time.
        poll_cap_warn, poll_cap_stuck: Unchanged answers to a polling call however long it waits.
        poll_growth, poll_shortest_seconds, poll_patient_seconds: A poll is paced when it waits this many times
            longer than before and no less than the shortest, or this long.
        monologue_stuck: The same text reply in a row without a call between.
    """

    stale_warn: int = 3
    stale_stuck: int = 4
    stale_novel: float = 0.5
    nearly: int = 1
    error_warn: int = 3
    error_stuck: int = 3
    error_novel: float = 2.0
    futile_warn: int = 5
    futile_stuck: int = 6
    cycle_repetitions: int = 3
    cycle_period: int = 12
    no_news_warn: int = 5
    no_news_stuck: int = 6
    similar_errors_warn: int = 5
    similar_errors_stuck: int = 6
    unknown_tool_warn: int = 3
    unknown_tool_stuck: int = 4
    empty_warn: int = 6
    empty_stuck: int = 8
    reworded_novel: float = 1.0
    reworded_warn: int = 4
    reworded_stuck: int = 5
    weak_warn: int = 10
    weak_stuck: int = 20
    parallel_warn: int = 3
    blind_window: int = 10
    blind_in_window: int = 4
    blind_in_a_row: int = 3
    poll_warn: int = 10
    poll_stuck: int = 20
    poll_cap_warn: int = 60
    poll_cap_stuck: int = 120
    poll_growth: float = 1.5
    poll_shortest_seconds: float = 1.0
    poll_patient_seconds: float = 30.0
    monologue_stuck: int = 3

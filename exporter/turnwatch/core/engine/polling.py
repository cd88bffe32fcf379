"""Is it waiting for something, and does it wait well?"""

from __future__ import annotations

from turnwatch.core.effects import is_polling, moves_on
from turnwatch.core.engine.finding import Finding, severity
from turnwatch.core.engine.memory import Answer
from turnwatch.core.engine.thresholds import Thresholds
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence


def goes_on(call: ToolCall, changes: bool | None, result: Evidence) -> bool:
    """Whether the same answer again is no wonder.

    The call is meant to be asked again; or, unless it changes state or is declared to be no poll, a short answer
    says that something is not done yet, or no more than that a page was scrolled or a key was pressed.
    """
    if is_polling(call):
        return True
    if changes or call.polling is not None or result.whole is None:
        return False
    return result.pending or moves_on(call)


def answered_at(call: ToolCall, thought: float) -> float | None:
    """When the agent had the result of this call, as far as known, not counting what the model took until then."""
    at = call.ended if call.ended is not None else call.started
    return None if at is None else at - thought


def note_pace(
    call: ToolCall, answer: Answer, polling: bool, new_round: bool, acts: int, thought: float, t: Thresholds
) -> None:
    """Note when this call was made, and whether it waited as polling does: longer than before, or long.

    A declared poll may do its waiting inside the call, so its pace is from start to start. Other calls are
    paced by what the agent itself waits: a slow tool is not patience, and neither is a slow model or other work.

    Args:
        call: The call.
        answer: Its answer.
        polling: Whether it is meant to be asked again, or sleeps.
        new_round: Whether it is a repeat in a new round.
        acts: Calls of the turn so far that were neither polls nor sleep, this one included.
        thought: Seconds that the model has taken so far.
        t: The thresholds.
    """
    start = call.started if call.started is not None else call.ended
    start = None if start is None else start - thought
    before, answer.asked_at = answer.asked_at, start if polling else answered_at(call, thought)
    worked, answer.acts = acts - answer.acts - (not polling), acts
    if not new_round:
        return
    wait = None if start is None or before is None or (worked and not polling) else max(0.0, start - before)
    shorter, answer.wait = answer.wait, wait
    if wait is None:
        answer.busy += 1
        answer.paced = False
    elif wait < t.poll_patient_seconds:
        grown = wait >= t.poll_shortest_seconds and (shorter is None or wait >= shorter * t.poll_growth)
        answer.busy += not grown or shorter is None
        answer.paced = answer.paced and grown


def polled(tool: str, answer: Answer, t: Thresholds) -> Finding | None:
    """A poll that does not back off, or goes on for very long."""
    found = severity(answer.busy, t.poll_warn, t.poll_stuck)
    if found != "stuck":
        found = severity(answer.rounds, t.poll_cap_warn, t.poll_cap_stuck) or found
    return found and Finding(
        "stale_repeat",
        found,
        answer.numbers,
        f"{tool} gave the same answer {answer.rounds} times, {answer.busy} of them without a longer wait before.",
        "the answer to the poll",
        "a different answer, or a longer wait before each poll",
    )

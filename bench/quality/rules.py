"""The rules that are compared: each says at which call it would stop a trajectory, and where the pattern began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from bench.quality.recordings import Recording

from turnwatch.core.engine import Engine, Thresholds
from turnwatch.core.events import ToolCall
from turnwatch.core.hashing import input_hash
from turnwatch.core.watch import Watch
from turnwatch.sources.replay import replay


class Stop(NamedTuple):
    """Numbers of calls, 0-based within the trajectory."""

    first: int
    detected: int


Rule = Callable[[Recording], Stop | None]


def engine(recording: Recording) -> Stop | None:
    """The first stuck verdict of the turn state: what scan and a live turn say."""
    watch = Watch()
    before = 0
    for recorded in recording.turns():
        turn = replay(recorded, watch)
        for verdict in turn.verdicts:
            if verdict.severity == "stuck":
                return Stop(before + verdict.first_call - 1, before + verdict.detected_call - 1)
        before += turn.tool_calls
    return None


def engine_with(thresholds: Thresholds) -> Rule:
    """The engine alone, with other thresholds."""

    def rule(recording: Recording) -> Stop | None:
        before = 0
        for recorded in recording.turns():
            judge = Engine(thresholds=thresholds)
            for event in recorded.events:
                if isinstance(event, ToolCall):
                    verdict = judge.observe(event)
                    if verdict is not None and verdict.severity == "stuck":
                        return Stop(before + verdict.first_call - 1, before + verdict.detected_call - 1)
            before += judge.calls
        return None

    return rule


def third_identical(recording: Recording) -> Stop | None:
    """The first seed's rule: more than two identical calls in a turn."""
    return _nth_of(recording, 3, lambda call: (call.tool, _hash(call)))


def same_result_three_times(recording: Recording) -> Stop | None:
    """The same tool, arguments and result, three times in a turn."""
    return _nth_of(recording, 3, lambda call: (call.tool, _hash(call), call.result and call.result.exact))


def four_of_ten(recording: Recording) -> Stop | None:
    """The second seed's rule: four of the last ten calls of a turn are identical."""
    calls = _keys(recording)
    for number, key in enumerate(calls):
        window = [at for at in range(max(0, number - 9), number + 1) if calls[at] == key]
        if len(window) >= 4:
            return Stop(window[0], number)
    return None


def five_in_a_row(recording: Recording) -> Stop | None:
    """Gemini CLI: five identical calls in a row."""
    calls = _keys(recording)
    run = 1
    for number in range(1, len(calls)):
        run = run + 1 if calls[number] == calls[number - 1] else 1
        if run >= 5:
            return Stop(number - 4, number)
    return None


def openhands(recording: Recording) -> Stop | None:
    """OpenHands' stuck detector: 4 times the same call and result, 3 the same call and an error, 6 alternating."""
    calls = recording.tool_calls()
    pairs = [(turn, call.tool, _hash(call), call.result and call.result.exact) for turn, call in calls]
    failed = [call.outcome == "error" for _, call in calls]
    for number in range(len(calls)):
        last = pairs[max(0, number - 3) : number + 1]
        if len(last) == 4 and len(set(last)) == 1:
            return Stop(number - 3, number)
        same_call = len({pair[:3] for pair in pairs[max(0, number - 2) : number + 1]}) == 1
        if number >= 2 and same_call and all(failed[number - 2 : number + 1]):
            return Stop(number - 2, number)
        last = pairs[max(0, number - 5) : number + 1]
        if len(last) == 6 and len(set(last[::2])) == 1 and len(set(last[1::2])) == 1 and last[0] != last[1]:
            return Stop(number - 5, number)
    return None


def _hash(call: ToolCall) -> str:
    return input_hash(call.tool, call.args)


def _keys(recording: Recording) -> list[tuple[int, str, str]]:
    return [(turn, call.tool, _hash(call)) for turn, call in recording.tool_calls()]


def _nth_of(recording: Recording, nth: int, key: Callable[[ToolCall], object]) -> Stop | None:
    seen: dict[object, list[int]] = defaultdict(list)
    for number, (turn, call) in enumerate(recording.tool_calls()):
        numbers = seen[turn, key(call)]
        numbers.append(number)
        if len(numbers) >= nth:
            return Stop(numbers[0], number)
    return None


RULES: dict[str, Rule] = {
    "turnwatch": engine,
    "3rd identical call": third_identical,
    "4 of the last 10": four_of_ten,
    "OpenHands": openhands,
    "5 in a row (Gemini CLI)": five_in_a_row,
    "same result 3 times": same_result_three_times,
}

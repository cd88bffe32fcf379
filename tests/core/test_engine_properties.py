"""What holds for every sequence of calls."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwatch.core.engine import Engine
from turnwatch.core.events import MISSING, ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.replay import replay
from turnwatch.sources.trajectories import turns_of

pytestmark = pytest.mark.untraced

BOUND = 8

tools = st.sampled_from(["read_file", "edit_file", "bash", "click", "think", "get_job", "search"])
words = st.sampled_from(["a", "b", "c d", "ls -la", "rm x", "sleep 3", "how to"])
arguments = st.dictionaries(
    st.sampled_from(["q", "command", "n", "x"]), words | st.integers(0, 2) | st.none(), max_size=3
)
results = st.sampled_from(
    [
        "ok",
        "",
        "[]",
        "3 failed",
        "2 failed",
        "Error: no",
        "took 0.3s",
        "took 0.4s",
        "a page of very many more words than eight",
    ]
)
steps = st.lists(
    st.fixed_dictionaries(
        {
            "tool": tools,
            "args": arguments,
            "result": results | st.none(),
            "error": st.booleans(),
            "batch": st.none() | st.integers(1, 3),
            "wait": st.sampled_from([0.0, 1.0, 5.0, 40.0]),
            "polling": st.none() | st.booleans(),
        }
    ),
    max_size=12,
)


def events(sequence, *, start=0.0, timed=True):
    at, made = start, []
    for step in sequence:
        at += step["wait"]
        made.append(
            ToolCall(
                step["tool"],
                dict(step["args"]),
                result=None if step["result"] is None else Evidence.of(step["result"]),
                outcome="error" if step["error"] else "ok",
                round=step["batch"],
                started=at if timed else None,
                ended=at if timed else None,
                polling=step["polling"],
            )
        )
    return made


def judged(calls, engine=None):
    engine = engine or Engine()
    return [engine.observe(call) for call in calls]


def looping(sequence):
    """Sequences that repeat themselves, so that there is something to judge."""
    return (sequence * 5)[:40]


@given(steps.map(looping))
def test_a_verdict_never_depends_on_what_follows(sequence):
    whole = judged(events(sequence))
    for length in range(0, len(sequence), 7):
        assert judged(events(sequence[:length])) == whole[:length]


@given(steps.map(looping))
def test_the_order_of_keys_does_not_matter(sequence):
    turned = [{**step, "args": dict(reversed(step["args"].items()))} for step in sequence]
    assert judged(events(sequence)) == judged(events(turned))


@given(steps.map(looping), st.floats(1, 2e9))
def test_the_hour_does_not_matter(sequence, start):
    whole = [{**step, "wait": float(int(step["wait"]))} for step in sequence]
    assert judged(events(whole, start=0.0)) == judged(events(whole, start=float(int(start))))


@given(steps.map(looping), st.sampled_from([0.0, 0.5]))
def test_without_a_growing_or_long_wait_the_clock_does_not_matter(sequence, wait):
    hurried = [{**step, "wait": wait, "polling": None} for step in sequence]
    assert judged(events(hurried)) == judged(events(hurried, timed=False))


@given(steps.map(looping), steps.map(looping))
def test_another_turn_does_not_matter(sequence, other):
    alone = judged(events(sequence))
    one, two = Engine(), Engine()
    beside = []
    for number, call in enumerate(events(sequence)):
        for stranger in events(other[number : number + 1]):
            two.observe(stranger)
        beside.append(one.observe(call))
    assert beside == alone


@given(steps.map(looping))
def test_every_kind_and_severity_is_told_once_a_tool(sequence):
    told = [(v.kind, v.severity, v.tool) for v in judged(events(sequence)) if v is not None]
    assert len(told) == len(set(told))


@given(steps.map(looping))
def test_numbers_are_those_of_calls(sequence):
    for number, verdict in enumerate(judged(events(sequence)), 1):
        if verdict is not None:
            assert verdict.detected_call == number
            assert 1 <= verdict.first_call <= number
            assert list(verdict.calls) == sorted(verdict.calls)
            assert set(verdict.calls) <= set(range(1, number + 1))


@given(steps.map(looping))
def test_calls_without_arguments_are_never_judged(sequence):
    blind = events(sequence)
    for call in blind:
        call.args = MISSING
    assert not any(judged(blind))


@given(steps.map(looping))
def test_calls_without_results_are_never_stuck(sequence):
    calls = events([{**step, "result": None, "error": False} for step in sequence])
    assert all(verdict is None or verdict.severity == "warn" for verdict in judged(calls))


def kept(engine, seen=None):
    """How many things an engine holds on to, containers opened."""
    seen = set() if seen is None else seen
    if id(engine) in seen:
        return 0
    seen.add(id(engine))
    if isinstance(engine, dict):
        return sum(kept(part, seen) for pair in engine.items() for part in pair) + len(engine)
    if isinstance(engine, (list, tuple, set)) or type(engine).__name__ == "deque":
        return sum(kept(part, seen) for part in engine) + len(engine)
    slots = getattr(type(engine), "__slots__", ())
    return 1 + sum(kept(getattr(engine, name), seen) for name in slots if hasattr(engine, name))


def mixed(number):
    """A call of every kind by turns: new and repeated, failing, empty, parallel, of many tools."""
    tool = ["read_file", "bash", "edit_file", "search", f"tool{number % 300}", "get_job", "click"][number % 7]
    args = {"n": number} if number % 3 else {"q": "the same"}
    result = ["ok", "", f"text {number}", "Error: no", "[]", f"Error: no {number}", f"{number} left"][number % 11 % 7]
    return ToolCall(tool, args, result=Evidence.of(result), round=number // 4, started=number, ended=number)


def test_memory_does_not_grow_with_the_turn():
    engine = Engine(bound=BOUND)
    sizes = []
    for number in range(6300):
        engine.observe(mixed(number))
        if number >= 2100 and number % 700 == 0:
            sizes.append(kept(engine))
    # Every table is full by then: what is kept wavers and does not rise.
    assert max(sizes[-2:]) <= max(sizes[:3]) * 1.05


def test_many_different_calls_forget_the_oldest_singleton_first():
    engine = Engine(bound=BOUND)
    for _ in range(2):
        engine.observe(ToolCall("read", {"p": "kept"}, result=Evidence.of("x")))
    for number in range(100):
        engine.observe(ToolCall("read", {"p": number}, result=Evidence.of(f"text {number}")))
    assert engine.dropped == 100 - (BOUND - 1)
    engine.observe(ToolCall("read", {"p": "kept"}, result=Evidence.of("x")))
    assert engine.last.repeat_result == "same"


# Hand calls and files


def record_of(sequence):
    return {
        "trajectory_id": "t",
        "calls": [
            {
                "tool": step["tool"],
                "args": step["args"],
                "result": None if step["error"] else step["result"],
                "error": (step["result"] or "failed") if step["error"] else None,
                "batch": number // 2 if step["batch"] else None,
                "polling": step["polling"],
                "t": 5.0 * number,
            }
            for number, step in enumerate(sequence)
        ],
    }


@settings(deadline=None)
@given(steps.map(looping))
def test_hand_calls_and_files_give_the_same_verdicts(sequence):
    record = record_of(sequence)
    from_file = [verdict for turn in turns_of(record) for verdict in replay(turn, Watch()).verdicts]

    watch = Watch()
    hand = TurnState("agent", watch=watch)
    last = object()
    for call in record["calls"]:
        if call["batch"] is None or call["batch"] != last:
            hand.begin_model()
        last = call["batch"]
        text = call["error"] or call["result"]
        event = ToolCall(
            call["tool"],
            call["args"],
            result=None if text is None else Evidence.of(text),
            outcome="error" if call["error"] else "ok",
            started=call["t"],
            ended=call["t"],
            polling=call["polling"],
        )
        hand.begin_call(event)
        hand.end_call(event)
    assert hand.verdicts == from_file


@settings(deadline=None)
@given(steps.map(looping))
def test_published_digests_give_the_same_verdicts_as_the_text(sequence):
    def published(call):
        if call.result is None:
            return call
        text = call.result.whole or ""
        call.result = Evidence.from_digests(
            f"{call.result.exact:x}",
            f"{call.result.normal:x}",
            call.result.simhash,
            head=text[:200],
            length=len(text),
        )
        return call

    assert judged(events(sequence)) == judged(published(call) for call in events(sequence))


def test_verdicts_are_values():
    engine = Engine()
    verdict = next(v for v in judged([ToolCall("a", {}, result=Evidence.of("x"))] * 4, engine) if v)
    assert replace(verdict) == verdict

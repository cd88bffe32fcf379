"""What changes nothing of what happened changes nothing of what is counted: every case, changed in every way."""

import json
from dataclasses import astuple, replace
from random import Random

import pytest
from tests.sources.spans.changes import (
    CHANGES,
    parents_before_their_children,
    requests_between_spans_and_their_parents,
    spans_of_the_applications_own_between,
    two_runs_at_once,
)
from tests.sources.spans.corpus import cases, found_in, measure

pytestmark = pytest.mark.heavy

# What one change does change, by change and dialect.
KNOWN = {
    # The first failure of which only a span inside the call tells; from then on it is known that one will come.
    (parents_before_their_children, "autogen_openinference"): ["errors"],
    (parents_before_their_children, "openai_agents_genai_mcp"): ["errors"],
    # Tells of parents first, and spans of nobody's interest are not remembered for what may come below them.
    (requests_between_spans_and_their_parents, "langchain_langsmith_otel"): ["turns", "whose"],
    (spans_of_the_applications_own_between, "langchain_langsmith_otel"): ["turns", "whose"],
    # A sub-agent without a span or a name of its own shows only by its tool calls, after its first model call.
    (parents_before_their_children, "langchain_langfuse"): ["whose"],
    # No call tells of its agent, and the crew's span comes before that of its agent.
    (parents_before_their_children, "crewai_traceloop"): ["whose"],
}


def captured(case):
    return [json.loads(line) for line in case.files("sdk-json")[0].read_text().splitlines()]


def changed(change, case):
    return measure(change(captured(case), Random(f"{case.dialect}/{case.name}")))


def whose(found):
    """Which agent made how many calls in each turn, and who had called it."""
    return sorted(
        (turn.agent, turn.parent.agent if turn.parent is not None else "", turn.iterations, turn.tool_calls)
        for turn in found.turns
    )


@pytest.mark.parametrize("change", [pytest.param(change, id=change.__name__) for change in CHANGES])
def test_the_numbers_stay_the_same_and_whose_they_are(change):
    wrong = {}
    for case in cases():
        found, expected = changed(change, case), found_in(case, "sdk-json").numbers
        known = KNOWN.get((change, case.dialect), [])
        expected = replace(expected, **{field: getattr(found.numbers, field) for field in known if field != "whose"})
        if found.numbers != expected or found.faults:
            wrong[f"{case.dialect}/{case.name}"] = (found.numbers, expected)
        elif "whose" not in known and whose(found) != whose(found_in(case, "sdk-json")):
            wrong[f"{case.dialect}/{case.name}"] = (whose(found), whose(found_in(case, "sdk-json")))
    assert not wrong


def test_two_runs_at_once_are_twice_one_run():
    wrong = {}
    for case in cases():
        both, one = changed(two_runs_at_once, case).numbers, found_in(case, "sdk-json").numbers
        if astuple(both) != tuple(2 * number for number in astuple(one)):
            wrong[f"{case.dialect}/{case.name}"] = (both, one)
    assert not wrong

"""However spans reach a service: what comes in time is counted as it was, and nothing is counted twice."""

from dataclasses import fields
from random import Random

import pytest
from tests.sources.spans.corpus import Numbers, cases, found_in
from tests.sources.spans.deliveries import (
    IN_ORDER,
    IN_PART,
    OUT_OF_ORDER,
    by_a_collector_with_several_senders,
    deliver,
    each_span_at_a_time_of_its_own,
    every_instrumentation_in_a_batch_of_its_own,
    sub_agents_in_processes_of_their_own,
)
from tests.sources.spans.test_changes import captured, whose

pytestmark = pytest.mark.heavy

SUMS = ("tool_calls", "iterations", "input", "output", "cached", "errors")
# What is not right, by delivery and dialect.
KNOWN = {
    # A client tells of the calls in traces of their own: the next one's span comes before the framework's of this one.
    (by_a_collector_with_several_senders, "langchain_openinference_both"): ["tool_calls", "turns", "whose"],
    (sub_agents_in_processes_of_their_own, "langchain_openinference_both"): ["tool_calls", "turns", "whose"],
    (each_span_at_a_time_of_its_own, "langchain_openinference_both"): ["tool_calls"],
    (every_instrumentation_in_a_batch_of_its_own, "langchain_openinference_both"): ["tool_calls"],
    # No call tells of its agent, and the crew's span comes before that of its agent.
    (sub_agents_in_processes_of_their_own, "crewai_traceloop"): ["whose"],
    # The agent's span comes before the nameless one round it, and that one's caller has ended by then.
    (sub_agents_in_processes_of_their_own, "openlit_openai_agents"): ["whose"],
    # The client's own span has the right number in streams, and comes when the call has been counted.
    (each_span_at_a_time_of_its_own, "anthropic_traceloop"): ["output"],
}


def delivered(delivery, case):
    return deliver(delivery(captured(case), Random(f"{case.dialect}/{case.name}")))


def named(deliveries):
    return [pytest.param(delivery, id=delivery.__name__) for delivery in deliveries]


@pytest.mark.parametrize("delivery", named(IN_ORDER))
def test_what_comes_in_time_is_counted_as_it_was(delivery):
    wrong = {}
    for case in cases():
        found, expected = delivered(delivery, case), found_in(case, "sdk-json")
        known = KNOWN.get((delivery, case.dialect), [])
        for field in [field.name for field in fields(Numbers) if field.name not in known]:
            if getattr(found.numbers, field) != getattr(expected.numbers, field):
                wrong[f"{case.dialect}/{case.name}"] = (found.numbers, expected.numbers)
        if "whose" not in known and whose(found) != whose(expected):
            wrong[f"{case.dialect}/{case.name}"] = (whose(found), whose(expected))
        assert not found.faults
    assert not wrong


@pytest.mark.parametrize("delivery", named([*OUT_OF_ORDER, *IN_PART]))
def test_nothing_counts_twice(delivery):
    wrong = {}
    for case in cases():
        found, expected = delivered(delivery, case), found_in(case, "sdk-json").numbers
        for field in [field for field in SUMS if field not in KNOWN.get((delivery, case.dialect), [])]:
            if getattr(found.numbers, field) > getattr(expected, field):
                wrong[f"{case.dialect}/{case.name}"] = (found.numbers, expected)
        assert not found.faults
    assert not wrong

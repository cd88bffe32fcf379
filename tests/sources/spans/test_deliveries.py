"""However spans reach a service: what comes in time is counted as it was, and nothing is counted twice."""

from dataclasses import fields
from random import Random

import pytest
from tests.sources.spans.corpus import Numbers, cases, found_in
from tests.sources.spans.deliveries import IN_ORDER, IN_PART, OUT_OF_ORDER, deliver
from tests.sources.spans.test_changes import captured, known, whose

pytestmark = pytest.mark.heavy

SUMS = ("tool_calls", "iterations", "input", "output", "cached", "errors")


def delivered(delivery, case):
    return deliver(delivery(captured(case), Random(f"{case.dialect}/{case.name}")))


def named(deliveries):
    return [pytest.param(delivery, id=delivery.__name__) for delivery in deliveries]


@pytest.mark.parametrize("delivery", named(IN_ORDER))
def test_what_comes_in_time_is_counted_as_it_was(delivery):
    wrong = {}
    for case in cases():
        found, expected = delivered(delivery, case), found_in(case, "sdk-json")
        may_differ = known(delivery, case)
        for field in [field.name for field in fields(Numbers) if field.name not in may_differ]:
            if getattr(found.numbers, field) != getattr(expected.numbers, field):
                wrong[f"{case.dialect}/{case.name}"] = (found.numbers, expected.numbers)
        if "whose" not in may_differ and whose(found) != whose(expected):
            wrong[f"{case.dialect}/{case.name}"] = (whose(found), whose(expected))
        assert not found.faults
    assert not wrong


@pytest.mark.parametrize("delivery", named([*OUT_OF_ORDER, *IN_PART]))
def test_nothing_counts_twice(delivery):
    wrong = {}
    for case in cases():
        found, expected = delivered(delivery, case), found_in(case, "sdk-json").numbers
        for field in [field for field in SUMS if field not in known(delivery, case)]:
            if getattr(found.numbers, field) > getattr(expected, field):
                wrong[f"{case.dialect}/{case.name}"] = (found.numbers, expected)
        assert not found.faults
    assert not wrong

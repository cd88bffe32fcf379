"""What changes nothing of what happened changes nothing of what is counted: every case, changed in every way."""

import functools
import json
import tomllib
from dataclasses import fields, replace
from random import Random

import pytest
from tests.sources.spans.changes import CHANGES, two_runs_at_once
from tests.sources.spans.corpus import HERE, Numbers, cases, found_in, measure

pytestmark = pytest.mark.heavy


@functools.cache
def _known():
    return tomllib.loads((HERE / "known.toml").read_text(encoding="utf-8"))


def known(change, case):
    """The numbers of a case that a change or delivery is known to change."""
    about = [each for each in _known().get(case.dialect, ()) if change.__name__ in each.get("in", [change.__name__])]
    return {number for each in about for number in each["differs"]}


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
        may_differ = known(change, case)
        kept = {field: getattr(found.numbers, field) for field in may_differ if field != "whose"}
        expected = replace(expected, **kept)
        if found.numbers != expected or found.faults:
            wrong[f"{case.dialect}/{case.name}"] = (found.numbers, expected)
        elif "whose" not in may_differ and whose(found) != whose(found_in(case, "sdk-json")):
            wrong[f"{case.dialect}/{case.name}"] = (whose(found), whose(found_in(case, "sdk-json")))
    assert not wrong


def test_two_runs_at_once_are_twice_one_run():
    wrong = {}
    for case in cases():
        both, one = changed(two_runs_at_once, case).numbers, found_in(case, "sdk-json").numbers
        counted = [field.name for field in fields(Numbers) if field.name not in known(two_runs_at_once, case)]
        if any(getattr(both, field) != 2 * getattr(one, field) for field in counted):
            wrong[f"{case.dialect}/{case.name}"] = (both, one)
    assert not wrong

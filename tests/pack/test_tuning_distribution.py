"""Counts of values in bounded memory, and what can still be said of them exactly."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.pack.tuning.distribution import Distribution, on_grid
from turnwatch.pack.tuning.tried_rules import RULES

THRESHOLDS = sorted({step for rule in RULES for step in rule.ladder})


def distribution(values):
    counted = Distribution()
    for value in values:
        counted.add(value)
    return counted


@given(st.integers(min_value=0, max_value=999))
def test_whole_numbers_under_a_thousand_are_kept_as_they_are(value):
    assert on_grid(value) == value


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_a_value_is_moved_up_by_less_than_one_percent(value):
    assert value * (1 - 1e-9) <= on_grid(value) <= value * 1.0101


@given(st.lists(st.one_of(st.floats(min_value=0, max_value=2e7), st.sampled_from(THRESHOLDS)), max_size=40))
def test_every_threshold_that_is_tried_is_counted_exactly(values):
    counted = distribution(values)
    for threshold in THRESHOLDS:
        # A billionth past a threshold is no more than rounding.
        assert counted.past(threshold) == sum(value > threshold * (1 + 1e-9) for value in values)


@given(
    st.lists(st.integers(min_value=0, max_value=999), min_size=1, max_size=60),
    st.floats(min_value=0.01, max_value=1),
)
def test_a_quantile_is_the_nearest_rank(values, share):
    expected = sorted(values)[max(1, math.ceil(share * len(values) - 1e-9)) - 1]
    assert distribution(values).quantile(share) == expected


@pytest.mark.parametrize(("value", "expected"), [(5e-324, 1e-9), (math.inf, 1e15), (1e308, 1e15), (-1, 0)], ids=str)
def test_values_that_nothing_has_are_kept_within_bounds(value, expected):
    assert on_grid(value) == expected


def test_memory_does_not_grow_with_the_number_of_values():
    counted = distribution(1.0001**step for step in range(100_000))
    assert len(counted) == 100_000
    assert len(list(counted)) <= 900 * 5


def test_what_is_taken_back_was_never_there():
    counted = distribution([3, 7])
    counted.add(7, -1)
    assert list(counted) == [(3, 1)]
    assert counted.largest == 3


@pytest.mark.parametrize("empty", [Distribution(), Distribution.of_all([])], ids=["new", "of none"])
def test_nothing_has_no_largest_value_and_no_quantile(empty):
    assert (len(empty), empty.largest, empty.quantile(0.5), empty.past(0)) == (0, 0, 0, 0)

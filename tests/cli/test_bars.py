"""Histograms of one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.cli.bars import bars
from turnwatch.pack.tuning.distribution import Distribution


def drawn(values, width=10):
    counted = Distribution()
    for value in values:
        counted.add(value)
    return bars(counted, width)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ""),
        ([0, 0], ""),
        ([5], "█"),
        ([1, 1, 1, 1, 2, 4, 4], "█▂ ▄"),
        ([2, 3, 3, 0], "▄█"),
        ([0.5, 0.5], "█"),
        ([1] * 1000 + [10], "█        ▁"),
    ],
)
def test_whole_numbers_have_a_step_each_and_the_fullest_is_full(values, expected):
    assert drawn(values) == expected


def test_values_over_orders_of_magnitude_are_spread_by_their_ratio():
    assert drawn([1, 10, 100, 1000, 10_000], width=5) == "█████"


@given(st.lists(st.floats(min_value=0.001, max_value=1e9), min_size=1, max_size=50), st.integers(1, 40))
def test_no_width_is_passed_and_nothing_is_lost_from_sight(values, width):
    line = drawn(values, width)
    assert 1 <= len(line) <= width
    assert "█" in line
    assert len(line.split()) >= 1
    assert line == line.rstrip()

"""Numbers fit their columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.top.numbers import age, count, dollars, per_minute, share


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (count(None), "-"),
        (count(5.0), "5"),
        (count(9_999), "9999"),
        (count(12_345), "12.3k"),
        (per_minute(0.0), "0"),
        (per_minute(0.01), "<0.1"),
        (per_minute(0.44), "0.4"),
        (per_minute(9.97), "10"),
        (per_minute(61.2), "61"),
        (per_minute(1_234), "1.2k"),
        (per_minute(829_000), "829k"),
        (per_minute(1_000_000), "1.0M"),
        (dollars(0.0), "0"),
        (dollars(0.001), "<0.01"),
        (dollars(0.123), "0.12"),
        (dollars(43.84), "43.8"),
        (dollars(18_400), "18.4k"),
        (age(0), "-"),
        (age(8.9), "8s"),
        (age(125), "2m05"),
        (age(3 * 3600 + 300), "3h05"),
        (age(200_000), "2d07h"),
        (share(1.0, 4.0), "25"),
        (share(0.0, 0.0), "-"),
    ],
)
def test_shown(shown, text):
    assert shown == text


@given(st.floats(0, 1e300))
def test_any_number_takes_six_cells_at_most(value):
    assert all(len(text) <= 6 for text in (count(value), per_minute(value), dollars(value)))

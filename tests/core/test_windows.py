from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnwatch.core.windows import BUCKETS_PER_WINDOW, CallTimes, ExpiringMax, put_tails

WINDOW = 300.0
BUCKET = WINDOW / BUCKETS_PER_WINDOW


def test_largest_value_counts_until_it_expires():
    series = ExpiringMax()
    series.put(5, expires=10)
    series.put(3, expires=20)
    series.put(4, expires=15)
    assert [series.largest(now) for now in (9.9, 10, 15, 19, 20)] == [5, 4, 3, 3, 0]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), max_size=200), st.integers(0, 100))
def test_largest_agrees_with_a_plain_list(puts: list[tuple[int, int]], now: int):
    series = ExpiringMax()
    for value, expires in puts:
        series.put(value, expires)
    assert series.largest(now) == max((value for value, expires in puts if expires > now), default=0)


def test_staircase_stays_bounded_and_never_understates():
    series = ExpiringMax()
    puts = [(10_000 - step, float(step)) for step in range(10_000)]
    for value, expires in puts:
        series.put(value, expires)
    assert len(series._values) <= 128
    for now in (0.5, 17.0, 4_000.0, 9_998.5):
        assert series.largest(now) >= max(value for value, expires in puts if expires > now)


@given(st.lists(st.floats(0, 2_000), min_size=1, max_size=120), st.floats(0, 400))
def test_identical_calls_in_the_window_agree_with_a_list_of_timestamps(times: list[float], later: float):
    """Never fewer than the truth, and no more than a bucket's length late."""
    times.sort()
    series = ExpiringMax()
    calls = CallTimes(times[0])
    series.put(1, times[0] + WINDOW)
    for at in times[1:]:
        calls.add(at, WINDOW)
        put_tails(series, calls, WINDOW)
    now = times[-1] + later
    in_window = sum(1 for at in times if at + WINDOW > now)
    in_window_and_a_bucket = sum(1 for at in times if at + WINDOW + BUCKET > now)
    assert in_window <= series.largest(now) <= max(in_window_and_a_bucket, in_window)


def test_a_call_every_151_seconds_is_never_three_in_one_window():
    series = ExpiringMax()
    calls = CallTimes(0.0)
    for step in range(1, 50):
        calls.add(step * 151.0, WINDOW)
        put_tails(series, calls, WINDOW)
        assert series.largest(step * 151.0) == 2


def test_call_times_do_not_grow_with_the_number_of_calls():
    calls = CallTimes(0.0)
    for step in range(100_000):
        calls.add(step * 0.1, WINDOW)
    assert len(calls._latest) <= BUCKETS_PER_WINDOW + 1

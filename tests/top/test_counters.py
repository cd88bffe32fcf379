"""Rates and rises, over restarts, gaps and series that come and go."""

import pytest

from turnwatch.top import counters as counters_module
from turnwatch.top.counters import Counters
from turnwatch.top.reading import Sample

SPEND = "agent_spend_usd_total"


def spend(value, agent="a", model="m"):
    return Sample(SPEND, {"agent": agent, "model": model}, value)


def rise(counters, agent="a"):
    return counters.tallies().get(SPEND, {}).get((agent,))


def test_what_was_counted_before_the_first_look_is_no_rise():
    counters = Counters(60)
    counters.take(0, [spend(100)])
    assert rise(counters) == 0
    assert counters.rates() == {}
    assert counters.span_seconds == 0


def test_who_looks_once_counts_since_the_exporter_began_and_its_rates_do_not():
    counters = Counters(60, since_exporters_began=True)
    counters.take(0, [spend(100)])
    assert rise(counters) == 100
    counters.take(2, [spend(105)])
    assert rise(counters) == 105
    assert counters.rates()[SPEND]["a",] == 2.5


def test_a_rate_is_the_rise_a_second():
    counters = Counters(60)
    counters.take(0, [spend(100)])
    counters.take(2, [spend(105)])
    assert counters.rates()[SPEND]["a",] == 2.5
    assert rise(counters) == 5


def test_series_that_a_quantity_folds_are_added_up_each_for_itself():
    counters = Counters(60)
    counters.take(0, [spend(100, model="m"), spend(7, model="n")])
    counters.take(1, [spend(1, model="m"), spend(8, model="n")])  # only m began again
    assert rise(counters) == 1 + 1
    assert counters.restarts == 1


def test_a_value_below_the_last_one_is_a_restart_and_counts_from_nought():
    counters = Counters(60)
    counters.take(0, [spend(100)])
    counters.take(1, [spend(103)])
    counters.take(2, [spend(2)])
    assert rise(counters) == 5
    assert counters.restarts == 1


def test_a_series_that_comes_later_counts_in_full():
    counters = Counters(60)
    counters.take(0, [])
    counters.take(1, [spend(3)])
    assert rise(counters) == 3


def test_a_series_that_vanishes_and_comes_back_goes_on_where_it_was():
    counters = Counters(60)
    counters.take(0, [spend(100)])
    counters.take(1, [])
    counters.take(2, [spend(104)])
    assert rise(counters) == 4
    assert counters.restarts == 0


def test_rates_forget_what_is_older_than_the_window():
    counters = Counters(10)
    for second in range(0, 40, 2):
        counters.take(second, [spend(1000 if second >= 2 else 0)])  # all of it within the first two seconds
    assert counters.rates()[SPEND]["a",] == 0
    assert 10 <= counters.span_seconds <= 13
    assert rise(counters) == 1000


@pytest.mark.parametrize("interval", [0.1, 1, 5, 30])
def test_the_span_is_about_the_window_however_often_the_source_is_read(interval):
    counters = Counters(60)
    now = 0.0
    while now < 300:
        counters.take(now, [spend(now)])
        now += interval
    assert counters.rates()[SPEND]["a",] == pytest.approx(1)
    assert 60 <= counters.span_seconds <= 60 + max(interval, 60 / 12) + interval


def test_two_looks_are_enough_when_they_are_further_apart_than_the_window():
    counters = Counters(10)
    for second in (0, 100, 200):
        counters.take(second, [spend(second)])
    assert counters.rates()[SPEND]["a",] == 1


def test_only_tokens_in_and_out_are_added_up():
    counters = Counters(60)

    def tokens(value):
        kinds = ("input", "output", "cache_read", "reasoning")
        return [Sample("agent_tokens_total", {"agent": "a", "model": "m", "type": kind}, value) for kind in kinds]

    counters.take(0, tokens(0))
    counters.take(1, tokens(10))
    assert counters.rates()["agent_tokens_total"]["a",] == 20


def test_series_that_are_gone_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(counters_module, "MAX_REMEMBERED", 10)
    counters = Counters(60)
    for number in range(100):
        counters.take(number, [spend(1, model=f"m{number}-{each}") for each in range(5)])
    assert len(counters._last) <= 20


def test_agents_that_are_gone_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(counters_module, "MAX_REMEMBERED", 10)
    counters = Counters(60)
    for number in range(100):
        counters.take(number, [spend(1, agent=f"a{number}")])
    assert len(counters.tallies()[SPEND]) <= 20


def test_a_series_that_vanished_has_no_rate_but_keeps_what_it_rose_by():
    counters = Counters(60)
    counters.take(0, [spend(1), spend(1, agent="b")])
    counters.take(1, [spend(2), spend(2, agent="b")])
    counters.take(2, [spend(2)])
    assert set(counters.rates()[SPEND]) == {("a",)}
    assert rise(counters, "b") == 1

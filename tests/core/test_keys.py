from __future__ import annotations

from turnwatch.core.keys import KeyTable, key_of


def test_counts_start_at_the_second_time():
    table = KeyTable(8)
    assert table.add(key_of("a", "0"), 0.0, 300.0) is None
    assert table.add(key_of("b", "0"), 1.0, 300.0) is None
    again = table.add(key_of("a", "0"), 2.0, 300.0)
    assert again is not None
    assert again.count == 2


def test_oldest_singletons_are_dropped_first_and_counted():
    table = KeyTable(4)
    table.add(key_of("loop", "0"), 0.0, 300.0)
    table.add(key_of("loop", "0"), 0.0, 300.0)
    for number in range(100):
        table.add(number, 0.0, 300.0)
    assert len(table) == 4
    assert table.dropped == 97
    looped = table.add(key_of("loop", "0"), 0.0, 300.0)
    assert looped is not None
    assert looped.count == 3
    assert table.add(99, 0.0, 300.0) is not None
    assert table.add(0, 0.0, 300.0) is None


def test_the_key_that_is_being_repeated_is_kept_and_the_one_repeated_longest_ago_dropped():
    table = KeyTable(4)
    for key in ("loop", "a", "b", "c", "d", "e"):
        for _ in range(2):
            table.add(key_of(key, "0"), 0.0, 300.0)
            table.add(key_of("loop", "0"), 0.0, 300.0)
    looped = table.add(key_of("loop", "0"), 0.0, 300.0)
    assert looped is not None
    assert looped.count == 15
    assert table.add(key_of("a", "0"), 0.0, 300.0) is None


def test_a_turn_full_of_repeats_still_learns_new_keys():
    table = KeyTable(4)
    for number in range(4):
        table.add(number, 0.0, 300.0)
        table.add(number, 0.0, 300.0)
    table.add(key_of("new", "0"), 0.0, 300.0)
    assert table.add(key_of("new", "0"), 0.0, 300.0) is not None
    assert len(table) == 4

"""How much is kept of what tools returned."""

from __future__ import annotations

import pickle

import pytest

from turnwatch.guards.results import MAX_BYTES, MAX_RESULT_BYTES, Kept, KeptResults


class Unpicklable:
    def __init__(self) -> None:
        self.rows = [1, 2]
        self.later = lambda: self.rows


class CountsHowMuchIsWritten:
    written = 0

    def __reduce__(self):
        CountsHowMuchIsWritten.written += 1
        return bytes, (64 * 1024,)


@pytest.mark.parametrize("over", [-1_000, 1])
def test_a_result_is_kept_up_to_a_size(over):
    result = [bytes(MAX_RESULT_BYTES + over)]
    kept = Kept.of(result)
    assert (kept is None) == (over > 0)
    assert kept is None or kept.get() == result


def test_of_a_very_large_result_no_more_is_written_than_is_kept():
    rows = [{"row": number, "one": CountsHowMuchIsWritten()} for number in range(200_000)]
    assert Kept.of(rows) is None
    assert CountsHowMuchIsWritten.written < len(rows)


def test_results_that_can_only_be_copied_make_room_for_each_other_as_if_each_were_as_large_as_may_be():
    results = KeptResults(lambda: 0.0)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Unpicklable())
    keys = [("turn", "tool", bytes([number])) for number in range(200)]
    for key in keys:
        kept = Kept.of(Unpicklable())
        assert kept is not None
        results.keep(key, kept, results.epoch, 60.0)
    still = [key for key in keys if results.get(key) is not None]
    assert still == keys[-(MAX_BYTES // MAX_RESULT_BYTES - 1) :]

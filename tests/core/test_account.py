from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.core.account import Account, Refusal, Reservation
from turnwatch.core.events import Usage
from turnwatch.core.limits import NO_LIMITS, AssumedPrice, Limits


def account(**limits: object) -> Account:
    return Account(Limits(**limits))


def test_what_is_held_back_counts_as_used():
    budget = account(max_usd=1.0)
    first = budget.reserve(0, 0.4)
    assert isinstance(first, Reservation)
    assert isinstance(budget.reserve(0, 0.4), Reservation)
    refusal = budget.reserve(0, 0.4)
    assert isinstance(refusal, Refusal)
    assert (refusal.limit, refusal.used, refusal.allowed) == ("max_usd", 0.8, 1.0)
    Account.settle(first, 0.1, 100)
    assert isinstance(budget.reserve(0, 0.4), Reservation)


def test_ten_dimes_fit_into_a_dollar_and_an_eleventh_does_not():
    budget = account(max_usd=1.0)
    for _ in range(10):
        Account.settle(budget.reserve(0, 0.1), 0.1, 0)
    assert budget.usd == 1.0
    assert isinstance(budget.reserve(0, 0.1), Refusal)


def test_a_call_that_costs_nothing_passes_an_exhausted_budget():
    budget = account(max_usd=0.5, max_tokens=10)
    Account.settle(budget.reserve(0, 0.5), 0.5, 10)
    assert isinstance(budget.reserve(0, 0.0, 0), Reservation)
    assert isinstance(budget.reserve(0, None, 0), Refusal)
    assert isinstance(budget.reserve(0, 0.0, None), Refusal)


def test_a_call_of_unknown_cost_starts_while_anything_is_left_and_nothing_runs():
    budget = account(max_usd=1.0)
    Account.settle(budget.reserve(0), 0.7, 0)
    alone = budget.reserve(0)
    assert isinstance(alone, Reservation)
    assert isinstance(budget.reserve(0), Refusal), "beside it, one as dear as the dearest so far does not fit"


def test_settling_twice_charges_once():
    budget = account(max_usd=1.0)
    call = budget.reserve(0, 0.4)
    Account.settle(call, 0.4, 7)
    Account.settle(call, 0.4, 7)
    assert (budget.usd, budget.tokens) == (0.4, 7)


def test_a_refused_call_is_counted_nowhere():
    above = account(max_iterations=1)
    below = Account(Limits(max_iterations=5), above=(above,))
    below.reserve(0)
    assert isinstance(below.reserve(0), Refusal)
    assert (below.iterations, above.iterations) == (1, 1)


def test_children_pay_from_their_parents_account():
    parent = account(max_tool_calls=3, max_usd=1.0)
    one, other = Account(above=(parent,)), Account(above=(parent,))
    assert [one.admit_tool(0), other.admit_tool(0), one.admit_tool(0)] == [None] * 3
    assert other.admit_tool(0).limit == "max_tool_calls"
    Account.settle(one.reserve(0, 0.9), 0.9, 0)
    assert other.reserve(0, 0.2).limit == "max_usd"


def test_an_account_above_two_others_of_the_chain_pays_once():
    conversation = Account(Limits(max_tool_calls=10), "conversation")
    parent = Account(above=(conversation,))
    child = Account(above=(parent, conversation))
    child.admit_tool(0)
    assert conversation.tool_calls == 1


def test_the_65th_of_64_tool_calls_is_refused():
    cap = account(max_tool_calls=64)
    assert [cap.admit_tool(0) for _ in range(64)] == [None] * 64
    assert cap.admit_tool(0).limit == "max_tool_calls"


def test_a_conversations_seconds_are_those_in_which_a_turn_was_open():
    conversation = Account(Limits(max_seconds=100), "conversation")
    for start in (0.0, 1_000.0):
        turn = Account(above=(conversation,))
        child = Account(above=(turn, conversation))
        turn.open_turn(start)
        child.open_turn(start + 10)
        child.close_turn(start + 30)
        turn.close_turn(start + 45)
    assert conversation.seconds(5_000.0) == 90.0


def test_time_is_checked_before_a_call():
    turn = account(max_seconds=60)
    turn.open_turn(1_000.0)
    assert turn.admit_tool(1_059.9) is None
    assert turn.admit_tool(1_060.0).limit == "max_seconds"
    assert turn.reserve(1_060.0).limit == "max_seconds"


def test_each_warning_is_given_once():
    turn = account(max_tool_calls=10)
    seen = []
    for _ in range(10):
        turn.admit_tool(0)
        seen += [(warning.limit, warning.percent, warning.used) for warning in turn.warnings(0)]
    assert seen == [("max_tool_calls", 50, 5), ("max_tool_calls", 80, 8), ("max_tool_calls", 100, 10)]


def test_a_leap_over_two_marks_warns_of_both():
    budget = account(max_usd=1.0)
    Account.settle(budget.reserve(0, 0.9), 0.9, 0)
    assert [warning.percent for warning in budget.warnings(0)] == [50, 80]


def test_two_hundred_reservations_at_once_never_pass_the_budget():
    budget = account(max_usd=1.0)
    lock = threading.Lock()
    admitted: list[Reservation] = []
    over: list[float] = []
    start = threading.Barrier(200)

    def work() -> None:
        start.wait()
        with lock:
            call = budget.reserve(0, 0.03)
        if isinstance(call, Reservation):
            with lock:
                Account.settle(call, 0.03, 0)
                admitted.append(call)
                if budget.usd > 1.0:
                    over.append(budget.usd)

    threads = [threading.Thread(target=work) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 33
    assert not over


@given(
    st.lists(st.tuples(st.floats(0, 0.5), st.floats(0, 1), st.booleans()), max_size=60),
    st.floats(0.01, 2),
)
def test_calls_that_keep_to_what_they_reserved_never_pass_the_budget(calls, allowed):
    budget = account(max_usd=allowed)
    waiting = []
    for most, share, settles_now in calls:
        call = budget.reserve(0, most)
        if isinstance(call, Refusal):
            continue
        waiting.append((call, most * share))
        if settles_now:
            Account.settle(waiting[0][0], waiting.pop(0)[1], 0)
        assert budget.usd <= allowed + 1e-9


@pytest.mark.parametrize("value", [-1, True, "3", float("nan"), float("inf")])
def test_a_limit_that_is_no_amount_is_refused(value):
    with pytest.raises(ValueError, match="max_tool_calls"):
        Limits(max_tool_calls=value)


def test_dollars_that_are_no_number_are_refused():
    call = account(max_usd=1.0).reserve(0, 0.1)
    with pytest.raises(ValueError, match="finite"):
        Account.settle(call, float("nan"), 0)


def test_tightening_takes_the_smaller_limit_and_the_stricter_policy():
    loose = Limits(max_usd=5.0, max_tool_calls=3)
    strict = Limits(max_usd=1.0, max_seconds=60, unpriced="block")
    assert loose.tightened(strict) == Limits(max_usd=1.0, max_tool_calls=3, max_seconds=60, unpriced="block")
    assert strict.tightened(Limits(max_tool_calls=2)).unpriced == "block"
    assert NO_LIMITS.tightened(loose) is loose


def test_an_assumed_price_is_per_million_tokens():
    assert AssumedPrice(3, 15).cost(Usage(1_000_000, 100_000)) == 4.5

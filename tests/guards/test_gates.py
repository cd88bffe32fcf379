from __future__ import annotations

import threading

import pytest

import turnwatch as tw

MODEL = "claude-sonnet-4-5"  # 3 and 15 dollars per million tokens


@pytest.mark.parametrize("ceiling", [0, -1, float("nan"), float("inf"), None, "1", True])
def test_a_ceiling_is_a_number_of_dollars(ceiling):
    with pytest.raises(ValueError, match="ceiling_usd must be a number of more than 0"):
        tw.BudgetGate(ceiling)


def test_what_does_not_fit_is_told_of_the_budget():
    with (
        pytest.raises(tw.BudgetExceeded, match="the budget is at its limit: "),
        tw.BudgetGate(0.1).reserve(MODEL, 10**6, 1),
    ):
        pytest.fail("the call must not start")


def test_charges_add_up_and_raise_past_the_ceiling():
    gate = tw.BudgetGate(ceiling_usd=0.04)
    assert gate.charge(MODEL, 1_000, 1_000) == pytest.approx(0.018)
    gate.charge(MODEL, 1_000, 1_000)
    assert gate.remaining_usd == pytest.approx(0.004)
    with pytest.raises(tw.BudgetExceeded) as stopped:
        gate.charge(MODEL, 1_000, 1_000)
    assert stopped.value.stop_reason == "max_usd"
    assert gate.spent_usd == pytest.approx(0.054), "the money is gone whether or not it raises"
    assert gate.remaining_usd == 0


def test_reaching_the_ceiling_raises_before_the_next_call_is_made():
    gate = tw.BudgetGate(ceiling_usd=0.036)
    gate.charge(MODEL, 1_000, 1_000)
    with pytest.raises(tw.BudgetExceeded):
        gate.charge(MODEL, 1_000, 1_000)
    assert gate.spent_usd == pytest.approx(0.036)


def test_token_counts_that_are_none_or_negative_cost_nothing():
    gate = tw.BudgetGate(ceiling_usd=0.01)
    assert gate.charge(MODEL, -5, 0) == 0
    assert gate.charge(MODEL, None, None) == 0
    assert gate.spent_usd == 0


def test_a_call_that_costs_nothing_passes_an_exhausted_gate():
    gate = tw.BudgetGate(ceiling_usd=0.01)
    with pytest.raises(tw.BudgetExceeded):
        gate.charge(MODEL, 1_000, 1_000)
    assert gate.charge(MODEL, 0, 0) == 0
    assert gate.charge("nobodys-model", 0, 0) == 0


def test_a_model_without_a_price_is_blocked_unless_told_otherwise():
    with pytest.raises(tw.BudgetExceeded, match="no known price"):
        tw.BudgetGate(1.0).charge("nobodys-model", 1, 1)
    assert tw.BudgetGate(1.0, unpriced="allow").charge("nobodys-model", 1, 1) == 0
    assumed = tw.BudgetGate(1.0, unpriced=tw.AssumedPrice(1_000, 0))
    assert assumed.charge("nobodys-model", 500, 0) == 0.5


def test_reserving_holds_back_what_a_call_may_cost():
    gate = tw.BudgetGate(ceiling_usd=1.0)
    with gate.reserve(MODEL, 100_000, 20_000) as call:  # 0.60
        with pytest.raises(tw.BudgetExceeded), gate.reserve(MODEL, 100_000, 20_000):
            pytest.fail("the call must not start")
        call.settle(100_000, 1_000)
    assert gate.spent_usd == pytest.approx(0.315)
    with gate.reserve(MODEL, 100_000, 20_000):
        pass
    assert gate.spent_usd == pytest.approx(0.915), "a call that did not say costs what was held back"
    with pytest.raises(OSError, match="down"), gate.reserve(MODEL, 10_000, 0):
        raise OSError("down")
    assert gate.spent_usd == pytest.approx(0.915)


def test_two_hundred_reservations_at_once_never_pass_the_ceiling():
    gate = tw.BudgetGate(ceiling_usd=1.0)
    start = threading.Barrier(200)
    done: list[int] = []

    def work() -> None:
        start.wait()
        try:
            with gate.reserve(MODEL, 10_000, 0) as call:  # 0.03
                call.settle(10_000, 0)
                done.append(1)
        except tw.BudgetExceeded:
            pass

    threads = [threading.Thread(target=work) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gate.spent_usd == pytest.approx(0.03 * len(done))
    assert gate.spent_usd <= 1.0
    assert len(done) <= 33


def test_steps_are_counted_up_to_the_limit():
    limit = tw.StepLimit(max_steps=3)
    assert [limit.step() for _ in range(3)] == [1, 2, 3]
    with pytest.raises(tw.StepLimitExceeded, match="3 steps") as stopped:
        limit.step()
    assert stopped.value.stop_reason == "max_iterations"
    assert limit.steps == 3


def test_a_loop_may_run_over_the_limit_itself():
    steps: list[int] = []
    with pytest.raises(tw.StepLimitExceeded):
        steps.extend(tw.StepLimit(4))
    assert steps == [1, 2, 3, 4]


def test_the_recipe_of_three_asserts_stops_each_runaway():
    def run(calls: list[tuple[str, dict[str, str]]], spend: float) -> None:
        seen: set[str] = set()
        spent = 0.0
        for step, (tool, args) in enumerate(calls, start=1):
            spent += spend
            key = tw.input_hash(tool, args)
            assert step <= 10, "steps"
            assert spent <= 1.0, "spend"
            assert key not in seen, "loop"
            seen.add(key)

    different = [("search", {"q": str(number)}) for number in range(12)]
    run(different[:10], 0.01)
    with pytest.raises(AssertionError, match="steps"):
        run(different, 0.01)
    with pytest.raises(AssertionError, match="spend"):
        run(different, 0.4)
    with pytest.raises(AssertionError, match="loop"):
        run([("search", {"q": "x", "trace_id": str(number)}) for number in range(2)], 0.01)

"""Every case of every captured dialect, read three ways, against what really happened."""

from dataclasses import replace

import pytest
from tests.sources.spans.corpus import WAYS, batches, cases, found_in, measure

FIELDS = {
    "tool calls": ("tool_calls",),
    "arguments": ("repeats",),
    "errors": ("errors",),
    "model calls": ("iterations",),
    "usage": ("input", "output"),
    "cached tokens": ("cached",),
    "turns": ("turns",),
}
# Their calls have arguments and no results.
ARGUMENTS_ONLY = ("openlit_openai_nocontent", "anthropic_runner_traceloop", "smolagents_genai_both")
READABLE = [
    pytest.param(case, way, id=f"{case.dialect}-{case.name}-{way}")
    for case in cases()
    for way in WAYS
    if case.files(way)
]


@pytest.mark.parametrize(("case", "way"), READABLE)
def test_numbers_are_the_truth_wherever_the_spans_carry_it(case, way):
    found = found_in(case, way)
    lacks, expected = case.lacks(), case.expected
    wrong = {
        field: (getattr(found.numbers, field), getattr(expected, field))
        for what, fields in FIELDS.items()
        if what not in lacks
        for field in fields
        if getattr(found.numbers, field) != getattr(expected, field)
    }
    assert not wrong, "found, and what was so"
    assert found.faults == 0


@pytest.mark.parametrize(("case", "way"), READABLE)
def test_nothing_is_counted_twice(case, way):
    found, expected = found_in(case, way).numbers, case.expected
    for field in ("tool_calls", "iterations", "input", "output", "cached", "errors"):
        assert getattr(found, field) <= getattr(expected, field), field
    if "arguments" not in case.lacks():
        assert found.repeats <= expected.repeats


@pytest.mark.parametrize(("case", "way"), READABLE)
def test_what_the_spans_lack_is_said(case, way):
    found, lacks = found_in(case, way), case.lacks()
    if "arguments" in lacks and found.turns and case.name not in ("code_agent", "error"):
        assert found.missing_arguments > 0
        assert all(turn.verdict is None for turn in found.turns)
    if "arguments" not in lacks:
        assert found.missing_arguments == 0
    if "usage" in lacks:
        assert found.spent_nothing
        assert all(turn.spend_usd is None or not turn.iterations for turn in found.turns)
        assert found.calls_without_usage == found.numbers.iterations


@pytest.mark.parametrize("case", [pytest.param(case, id=case.dialect) for case in cases() if case.name == "loop"])
def test_a_loop_is_stuck_wherever_arguments_and_results_are_carried(case):
    verdicts = [turn.verdict for turn in found_in(case, "sdk-json").turns]
    if "arguments" in case.lacks():
        assert verdicts == [None] * len(verdicts)
    elif case.dialect in ARGUMENTS_ONLY:
        assert [(verdict.severity, verdict.mode) for verdict in verdicts] == [("warn", "args_only")]
    else:
        assert [(verdict.severity, verdict.mode) for verdict in verdicts] == [("stuck", "full")]


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.dialect}-{case.name}") for case in cases()])
def test_order_does_not_matter_where_parents_come_before_children(case):
    spans = [span for batch in batches(case, "sdk-json") for span in batch]
    parents_first = measure([[span] for span in sorted(spans, key=lambda span: span.start_ns)]).numbers
    # An error of which only a span inside the call tells comes after the call was counted.
    assert replace(parents_first, errors=0) == replace(found_in(case, "sdk-json").numbers, errors=0)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.dialect}-{case.name}") for case in cases()])
def test_a_batch_that_is_sent_again_changes_nothing(case):
    once = list(batches(case, "sdk-json"))
    assert measure(once + once).numbers == found_in(case, "sdk-json").numbers

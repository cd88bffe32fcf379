"""Every case of every captured dialect, read three ways, against what really happened."""

import pytest
from tests.sources.spans.corpus import WAYS, cases, found_in, wrong_in

from turnwatch.sources.spans.file_turns import iter_turns

pytestmark = pytest.mark.untraced
READABLE = [
    pytest.param(case, way, id=f"{case.dialect}-{case.name}-{way}")
    for case in cases()
    for way in WAYS
    if case.files(way)
]
# Four identical calls with identical results, one to a round, are stuck (see docs/detection.md).
LOOPS = [
    each
    for each in READABLE
    if each.values[0].truth["scenario"] in ("loop", "loop_reorder")
    and each.values[0].expected.repeats >= 4
    and "turns" not in each.values[0].lacks()
]


@pytest.mark.parametrize(("case", "way"), READABLE)
def test_numbers_are_the_truth_wherever_the_spans_carry_it(case, way):
    found = found_in(case, way)
    assert not wrong_in(case, found.numbers), "found, and what was so"
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
    if "arguments" in lacks and found.turns:
        assert found.missing_arguments > 0
        assert all(turn.verdict is None for turn in found.turns)
    if lacks.isdisjoint({"arguments", "arguments of all calls"}):
        assert found.missing_arguments == 0
    if "usage" in lacks:
        assert found.spent_nothing
        assert all(turn.spend_usd is None or not turn.iterations for turn in found.turns)
        assert found.calls_without_usage == found.numbers.iterations


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.dialect}-{case.name}") for case in cases()])
def test_whose_tokens_they_are_is_known_wherever_tokens_are(case):
    turns = found_in(case, "sdk-json").turns
    assert "" not in {model for turn in turns for model in turn.unpriced_models}


@pytest.mark.parametrize(("case", "way"), [case_and_way for case_and_way in READABLE if case_and_way.values[0].team])
def test_each_agent_of_a_team_has_its_own_turns_and_calls(case, way):
    turns = sorted(found_in(case, way).turns, key=lambda turn: turn.started)
    assert [(turn.agent, turn.iterations, turn.tool_calls) for turn in turns] == case.team
    assert len({turn.conversation_id for turn in turns}) == 1


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{case.dialect}-{case.name}") for case in cases() if case.team]
)
def test_a_team_is_stuck_where_its_agents_ask_each_other_to_and_fro_and_else_not(case):
    turns = [read.turn for read in iter_turns(case.files("sdk-json"))]
    severities = {verdict.severity for turn in turns for verdict in turn.verdicts}
    assert ("stuck" in severities) is case.truth["stuck"]
    assert case.truth["stuck"] or not severities


@pytest.mark.parametrize(("case", "way"), LOOPS)
def test_a_loop_is_stuck_wherever_arguments_and_results_are_carried(case, way):
    verdicts = [turn.verdict for turn in found_in(case, way).turns]
    if "arguments" in case.lacks():
        assert verdicts == [None] * len(verdicts)
    else:
        wanted = ("warn", "args_only") if "results" in case.lacks() else ("stuck", "full")
        assert [(verdict.severity, verdict.mode) for verdict in verdicts] == [wanted]

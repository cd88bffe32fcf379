"""Turns that hooks report: whose child is a turn that begins while another's tool runs?"""

from __future__ import annotations

import pytest

import turnwatch as tw
from turnwatch.guards.frameworks.reported import ReportedTurn, TurnOpener


def test_a_turn_that_begins_while_a_tool_runs_is_a_child_and_pays_along(watch):
    boss = ReportedTurn("boss", "c-1", watch=watch, limits=tw.Limits(max_iterations=2))
    boss.begin_model("m")
    with boss.tool_call("ask_helper") as running:
        helper = ReportedTurn("helper", watch=watch)
        assert (helper.state.parent, helper.state.conversation_id) == (boss.state, "c-1")
        helper.begin_model("m")
        with pytest.raises(tw.StepLimitExceeded):
            helper.begin_model("m")
        helper.close()
        running.returned("nothing")
    assert ReportedTurn("other", watch=watch).state.parent is None


def test_a_parent_may_be_named_and_one_that_is_over_is_none(watch):
    opener = TurnOpener("a", None, watch, {})
    boss = opener.open()
    assert opener.open(parent=boss).state.parent is boss.state
    boss.close()
    assert opener.open(parent=boss).state.parent is None


def test_within_a_turn_of_the_agents_own_its_calls_belong_to_that(watch):
    with tw.turn("a", watch=watch) as turn:
        boss = ReportedTurn("boss", watch=watch)
        with boss.tool_call("ask_helper") as running:
            assert ReportedTurn("helper", watch=watch).turn is turn
            running.returned("nothing")


def test_what_the_hooks_were_told_goes_before_what_the_framework_says(watch):
    told = TurnOpener("mine", "c-mine", watch, {}).open("theirs", "c-theirs").state
    assert (told.agent, told.conversation_id) == ("mine", "c-mine")
    heard = TurnOpener("", None, watch, {}).open("theirs", 17).state
    assert (heard.agent, heard.conversation_id) == ("theirs", "17")
    silent = TurnOpener("", None, watch, {}).open(None, "").state
    assert (silent.agent, silent.conversation_id) == ("", None)

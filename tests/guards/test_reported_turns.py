"""Turns that hooks report: whose child is a turn that begins while another's tool runs?"""

from __future__ import annotations

from contextvars import Context

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


def test_of_calls_in_begin_and_end_only_those_that_run_in_this_context_have_children(watch):
    opener = TurnOpener("", None, watch, {})
    boss = opener.open("boss", "c-1")
    boss.begin_tool("elsewhere")
    assert opener.open("other", "c-2").state.parent is None
    first, second = (boss.begin_tool("here", {"n": n}, runs_here=True) for n in (1, 2))
    helper = opener.open("helper", "a session of its own").state
    assert (helper.parent, helper.conversation_id) == (boss.state, "c-1")
    first.returned("rows")
    second.failed_saying("no rows")
    assert opener.open("other", "c-2").state.conversation_id == "c-2"


def test_a_call_that_is_refused_has_no_children(watch):
    boss = ReportedTurn("boss", watch=watch, limits=tw.Limits(max_tool_calls=1))
    boss.begin_tool("here", runs_here=True).returned("rows")
    with pytest.raises(tw.ToolBudgetExceeded):
        boss.begin_tool("here", runs_here=True)
    assert ReportedTurn("other", watch=watch).state.parent is None


def test_a_call_that_ends_in_another_context_leaves_that_one_as_it_is(watch):
    boss, here = ReportedTurn("boss", watch=watch), ReportedTurn("here", watch=watch)
    elsewhere = Context().run(boss.begin_tool, "t", runs_here=True)
    with here.tool_call("t") as running:
        elsewhere.returned("rows")
        assert ReportedTurn("helper", watch=watch).state.parent is here.state
        running.returned("rows")


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

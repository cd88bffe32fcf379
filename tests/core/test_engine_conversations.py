"""Conversations: what a user asks again is no loop, what agents pass to and fro is one."""

import pytest

from turnwatch.core.engine import Engine
from turnwatch.core.engine.replies import Refrains
from turnwatch.core.engine.teammates import Teammates
from turnwatch.core.events import ModelCall, ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch


def speak(watch, agent, *, tool=None, args=None, result="done", text=None, parent=None):
    """One turn of one agent: a call, or a reply."""
    turn = TurnState(agent, conversation_id="c", watch=watch, parent=parent)
    turn.begin_model()
    turn.end_model(ModelCall("m", text=None if text is None else Evidence.of(text)))
    if tool is not None:
        call = ToolCall(tool, args or {}, result=Evidence.of(result))
        turn.begin_call(call)
        turn.end_call(call)
    turn.end()
    return turn


def severities(turns):
    return [verdict.severity for turn in turns for verdict in turn.verdicts]


def test_two_agents_that_ask_each_other_for_clarification_are_one_loop():
    watch = Watch()
    turns = []
    for number in range(8):
        me, other = ("planner", "coder") if number % 2 == 0 else ("coder", "planner")
        turns.append(speak(watch, me, tool=f"ask_{other}", args={"question": "could you clarify?"}, result="sent"))
    stuck = [number for number, turn in enumerate(turns) if turn.verdict and turn.verdict.severity == "stuck"]
    assert stuck[0] == 5
    assert "conversation" in turns[5].verdict.reason


def test_two_agents_that_only_talk_are_one_loop():
    watch = Watch()
    turns = [
        speak(watch, "planner" if number % 2 == 0 else "coder", text=f"Which one? Ask {number % 2}.")
        for number in range(8)
    ]
    found = [verdict for turn in turns for verdict in turn.verdicts]
    assert next((verdict.kind, verdict.severity) for verdict in found) == ("monologue", "stuck")


@pytest.mark.parametrize(
    "labels", [("spam", "ok"), ('{"label": "spam"}', '["checked by a person"]'), ("needs review", "")]
)
def test_agents_that_sort_many_messages_into_few_classes_are_no_loop(labels):
    watch = Watch()
    turns = [speak(watch, f"agent {number % 2}", text=labels[number % 2]) for number in range(40)]
    assert severities(turns) == []


def test_a_reply_without_spaces_between_its_words_is_a_sentence_in_other_scripts():
    watch = Watch()
    turns = [
        speak(watch, f"agent {number % 2}", text=("请您说明一下范围", "请您先确认")[number % 2]) for number in range(8)
    ]
    assert "stuck" in severities(turns)


def test_a_user_who_asks_the_same_again_makes_no_loop():
    watch = Watch()
    turns = [speak(watch, "support", tool="get_order", args={"id": 7}, result="on its way") for _ in range(9)]
    assert severities(turns) == []


def test_a_user_who_asks_the_same_of_two_agents_by_turns_and_gets_news_makes_no_loop():
    watch = Watch()
    turns = []
    for number in range(10):
        agent = "sales" if number % 2 else "support"
        turns.append(speak(watch, agent, tool="get_order", args={"id": 7}, result=f"step {'abcdefghij'[number]} done"))
    assert severities(turns) == []


def test_workers_that_begin_alike_and_find_something_are_no_loop():
    watch = Watch()
    boss = TurnState("boss", conversation_id="c", watch=watch)
    turns = []
    for number in range(8):
        worker = TurnState("worker", watch=watch, parent=boss)
        for tool, args, result in [
            ("get_config", {}, "the settings"),
            ("read_file", {"n": number}, f"part {'abcdefgh'[number]}"),
        ]:
            call = ToolCall(tool, args, result=Evidence.of(result))
            worker.begin_call(call)
            worker.end_call(call)
        worker.end_model(ModelCall("m", text=Evidence.of("Done.")))
        worker.end()
        turns.append(worker)
    assert severities(turns) == []


def test_a_user_turn_in_between_starts_the_count_again():
    watch = Watch()
    turns = []
    for agent in ("a", "b", "a", "b", "b", "a", "b", "a"):
        turns.append(speak(watch, agent, tool=f"ask_{agent}", result="sent"))
    assert severities(turns) == []


def test_conversations_do_not_mix():
    watch = Watch()
    verdicts = []
    for number in range(12):
        turn = TurnState("ab"[number % 2], conversation_id=str(number % 6), watch=watch)
        call = ToolCall("ask", {}, result=Evidence.of("sent"))
        turn.begin_call(call)
        verdicts.append(turn.end_call(call))
        turn.end()
    assert verdicts == [None] * 12


def test_a_conversation_counts_turns_not_calls():
    engine = Engine(scope="conversation")
    found = []
    for number in range(3):
        engine.begin_turn(f"agent {number}")
        found += [engine.observe(ToolCall("look", {}, result=Evidence.of("same"))) for _ in range(10)]
    assert [verdict.severity for verdict in found if verdict] == ["warn"]


def test_a_user_who_asks_a_supervisor_again_makes_no_loop_though_its_sub_agent_began_first():
    watch = Watch()
    turns = []
    for _ in range(8):
        child = speak(watch, "helper", tool="grep", args={"x": "INC-1"}, result="open")
        boss = speak(watch, "boss", tool="search", args={"q": "open incidents"}, result="INC-1")
        boss.adopt(child)
        turns += [child, boss]
    assert severities(turns) == []


def test_a_supervisor_and_its_sub_agents_that_go_on_without_a_user_are_a_loop():
    watch = Watch()
    turns = []
    for number in range(8):
        child = speak(watch, "helper", tool="grep", args={"x": "INC-1"}, result="open")
        boss = speak(watch, f"boss {number % 2}", tool="search", args={"q": "open incidents"}, result="INC-1")
        boss.adopt(child)
        turns += [child, boss]
    assert "stuck" in severities(turns)


def test_agents_that_look_once_each_for_themselves_are_no_loop():
    watch = Watch()
    turns = [
        speak(watch, f"agent {number}", tool="search", args={"q": "refunds"}, result="thirty days")
        for number in range(8)
    ]
    assert severities(turns) == []


def test_agents_that_look_again_and_again_by_turns_are_one_loop():
    watch = Watch()
    turns = [
        speak(watch, f"agent {number % 3}", tool="search", args={"q": "refunds"}, result="thirty days")
        for number in range(12)
    ]
    assert severities(turns)[-1] == "stuck"


def test_what_another_agent_finds_is_news_though_it_made_the_same_call():
    watch = Watch()
    turns = []
    for number in range(4):
        turns.append(speak(watch, "asker", tool="ask", args={"q": "ready?"}, result="no"))
        turns.append(speak(watch, f"looker {number}", tool="look", result=f"found {'abcd'[number]}"))
    assert severities(turns) == []


def test_the_same_words_about_ever_new_drafts_are_no_loop():
    watch = Watch()
    turns = []
    for number in range(8):
        turns.append(speak(watch, "writer", text=f"Draft {'abcdefgh'[number]}."))
        turns.append(speak(watch, "critic", text="Please go on."))
    assert severities(turns) == []


def test_the_same_words_come_to_be_a_loop_once_nobody_says_anything_new():
    watch = Watch()
    drafts = [*"abcd", *"d" * 4]
    turns = [
        speak(watch, agent, text=text)
        for draft in drafts
        for agent, text in (("writer", f"This is draft {draft}."), ("critic", "Please go on."))
    ]
    stuck = [number for number, turn in enumerate(turns) if turn.verdict]
    assert stuck[0] == 10


def test_an_agent_that_answers_many_questions_alike_is_no_loop():
    watch = Watch()
    turns = []
    for _ in range(6):
        turns.append(speak(watch, "manager", text=None))
        turns.append(speak(watch, "validator", text="Valid."))
    assert severities(turns) == []


def test_what_is_remembered_of_a_team_is_bounded():
    teammates, refrains = Teammates(), Refrains()
    for number in range(5_000):
        assert not teammates.looks_for_itself(number, "a")
        refrains.reply(Evidence.of("Nothing more to say here."), f"agent {number}", number, 0)
    assert len(teammates) == 512
    assert len(refrains) == 64

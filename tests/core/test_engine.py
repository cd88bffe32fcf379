import json
from dataclasses import fields

import pytest
from tests.core.judged import PAGE, call, stuck_at, verdicts

from turnwatch.core.engine import Engine, Thresholds
from turnwatch.core.events import MISSING, ToolCall
from turnwatch.core.evidence import Evidence

# Results and epochs


def test_the_third_same_result_warns_and_the_fourth_is_stuck():
    assert verdicts([call()] * 6) == [("stale_repeat", "warn", 3), ("stale_repeat", "stuck", 4)]


def test_a_verdict_explains_itself_without_arguments():
    engine = Engine()
    found = [v for v in (engine.observe(call(args={"password": "hunter2"})) for _ in range(4)) if v][-1]
    assert (found.first_call, found.detected_call, found.calls, found.mode) == (1, 4, (1, 2, 3, 4), "full")
    assert "4 times" in found.reason
    assert found.unchanged
    assert found.clears
    assert "hunter2" not in "".join(str(getattr(found, f.name)) for f in fields(found))


def test_a_result_that_changes_is_no_loop():
    assert verdicts([call(result=f"entry {word}") for word in "abcdefghijklmnopqrst"]) == []


def test_a_new_change_of_state_resets_and_a_repeated_one_does_not():
    test = call("run_tests", result="two failed: a b")
    new = [call("edit", {"patch": word}, "applied") for word in "abcdef"]
    same = [call("edit", {"patch": "a"}, "applied")] * 6
    assert stuck_at([step for edit in new for step in (edit, test)]) is None
    assert stuck_at([step for edit in same for step in (edit, test)]) is not None


@pytest.mark.parametrize("form", [dict, json.dumps], ids=["object", "JSON text"])
@pytest.mark.parametrize("tool", ["bash", "act"])
def test_a_new_command_that_changes_state_resets_in_whatever_form_it_comes(tool, form):
    calls = []
    for word in "abcdef":
        edit = form({"command": f"sed -i s/old/{word}/ x.py", "timeout": 5})
        calls += [call(tool, edit, ""), call(tool, form({"command": "pytest", "timeout": 5}), "two failed: a b")]
    assert verdicts(calls) == []


def test_a_failed_change_does_not_reset():
    broken = [call("edit", {"patch": word}, error=f"cannot parse {word}") for word in "abcd"]
    assert stuck_at([step for edit in broken for step in (call("read"), edit)]) is not None


def test_the_same_change_with_another_id_in_its_answer_is_not_a_new_change():
    tickets = [call("create_ticket", {"title": "x"}, f"created T-{n}") for n in range(12)]
    looks = [call("list_tickets", result="unchanged list")] * 12
    assert stuck_at([step for pair in zip(tickets, looks, strict=True) for step in pair]) is not None


def test_rereading_while_working_is_no_loop():
    calls = []
    for n in range(5):
        calls.append(call("read", {"p": "a.py"}, "the file"))
        calls += [call("read", {"p": f"{word}{n}.py"}, f"{word} {n} content") for word in ("b", "c", "d")]
    assert stuck_at(calls) is None


def test_durations_and_ids_do_not_hide_a_repeat():
    assert stuck_at([call(result=f"3 passed in 0.{n}s") for n in range(10, 20)]) == 5


def test_a_volatile_result_that_comes_back_is_the_same_one():
    calls = [
        call("shell", {"c": "x"}, f'{{"output": "bad patch", "duration_seconds": 0.{n}}}') for n in (0, 1, 0, 2, 1)
    ]
    assert stuck_at(calls) == 4


def test_only_numbers_changing_is_weak():
    assert verdicts([call(result=f"{n} waiting") for n in range(25)]) == [
        ("repeat", "warn", 10),
        ("repeat", "stuck", 20),
    ]


def test_numbers_that_change_after_edits_are_progress():
    calls = []
    for n in range(25, 0, -1):
        calls += [call("edit", {"patch": n}, f"applied {n}"), call("run_tests", result=f"{n} failed")]
    assert verdicts(calls) == []


def test_a_nearly_same_page_takes_one_more():
    words = " ".join(f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst")
    pages = [f"{words} offer {n}" * 1 + " today" for n in ("anna", "bert", "cora", "dora", "emil", "fred", "gina")]
    assert stuck_at([call("click", {"on": "next"}, page) for page in pages]) == 6
    assert stuck_at([call("click", {"on": "next"}, page) for page in PAGE]) is None


# The engine's own key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"q": "Select  a"}, {"q": "select a"}),
        ({"q": "a", "page": None}, {"q": "a"}),
        ({"q": "a", "tags": [], "note": ""}, {"q": "a"}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"q": "a", "request_id": "1"}, {"q": "a", "request_id": "2"}),
        ({"n": 1}, {"n": 1.0}),
        ({"q": "a\n b"}, {"q": "a b"}),
    ],
)
def test_the_same_question_to_the_engine(one, other):
    assert stuck_at([call("search", args) for args in (one, other, one, other)]) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [({"id": 1}, {"id": 2}), ({"q": "a"}, {"q": "b"}), ({"cursor": "x"}, {"cursor": "y"}), ({"n": 1}, {"n": "1"})],
)
def test_other_questions_to_the_engine(one, other):
    assert stuck_at([call("look", args) for args in (one, other, one, other)]) is None


def test_white_space_counts_in_what_is_written():
    texts = ["if x:\n y", "if x:\n  y", "if x:\n   y", "if x:\n    y", "if x:\n     y"]
    assert verdicts([call("write_file", {"text": text}, "ok") for text in texts]) == []


# Cycles


@pytest.mark.parametrize("period", range(2, 13))
def test_cycles_of_every_period_are_found_in_their_third_pass(period):
    steps = [call("read", {"p": chr(97 + n)}, f"text {chr(97 + n)}") for n in range(period)]
    assert 2 * period < stuck_at(steps * 4) <= 3 * period
    assert stuck_at(steps * 2) is None


def test_going_through_everything_once_more_is_no_cycle():
    steps = [call("read", {"p": n}, f"text {chr(97 + n)}") for n in range(20)]
    assert verdicts(steps * 2) == []


def test_a_cycle_may_change_its_order():
    a, b, c = (call("read", {"p": p}, f"text {p}") for p in "abc")
    assert stuck_at([a, b, c, b, a, c, c, a, b, a, b, c]) is not None


def test_a_cycle_names_its_calls():
    engine = Engine()
    steps = [call("read", {"p": p}, f"text {p}") for p in "abc"] * 3
    found = next(v for v in map(engine.observe, steps) if v and v.kind == "cycle")
    assert (found.first_call, found.detected_call) == (1, 9)
    assert found.calls[-1] == 9


def test_fan_out_rounds_are_compared_whatever_the_order_in_them():
    calls = []
    for number in range(8):
        pair = [call("read", {"p": p}, f"text {p}", round=number) for p in "ab"]
        calls += pair if number % 2 else pair[::-1]
    assert stuck_at(calls) == 7


def test_parallel_duplicates_are_one_round():
    calls = [call(round=1) for _ in range(9)]
    assert verdicts(calls) == [("repeat", "warn", 3)]


def test_results_that_come_round_in_any_order_are_stuck():
    order = "abcabbcacbba"
    calls = [call("look", {"query": f"{p} {n}"}, f"view {p}") for n, p in enumerate(order)]
    assert stuck_at(calls) is not None


# Asking around


def test_other_words_for_a_grep_are_the_same_question():
    alternatives = ("retry|backoff", "backoff|retry", "retries|backoff", "retry|back.?off", "(retry|backoff)")
    assert stuck_at([call("grep", {"pattern": p, "path": "src"}, "a.py:3: retry()") for p in alternatives]) == 5


def test_many_things_may_be_of_one_kind():
    mails = [{"subject": f"bill {name}", "body": f"dear all, bill {name} is due"} for name in "abcdefghijkl"]
    assert verdicts([call("classify_email", mail, "label: invoice") for mail in mails]) == []
    assert verdicts([call("validate", mail, "valid") for mail in mails]) == []
    assert stuck_at([call("oracle", {"question": mail["body"]}, "label: invoice") for mail in mails]) == 5


def test_many_commands_with_one_answer_are_work_unless_they_only_look():
    names = "abcdefghijkl"
    assert verdicts([call("bash", {"command": f"./deploy.sh {name}"}, "Deployed.") for name in names]) == []
    assert stuck_at([call("bash", {"command": f"grep -n {name} notes"}, "3: a to l") for name in names]) == 5


@pytest.mark.parametrize(
    ("tool", "args"),
    [("bash", {"command": "python convert.py {}"}), ("render_chapter", {"name": "{}"}), ("python", {"code": "{} = 1"})],
)
@pytest.mark.parametrize("result", ["", "ok", '{"success": true}'])
def test_silence_is_success_where_a_call_may_have_done_something(tool, args, result):
    calls = [call(tool, {key: text.format(name) for key, text in args.items()}, result) for name in "abcdefghijkl"]
    assert verdicts(calls) == []
    assert stuck_at([call("search", {"q": name}, "") for name in "abcdefghijkl"]) == 8


def test_the_same_answer_for_other_names_is_no_loop():
    cities = ("Oslo", "Bergen", "Molde", "Hamar", "Narvik", "Voss", "Moss", "Lom", "Alta")
    assert stuck_at([call("get_weather", {"city": city}, "rain") for city in cities]) is None


def test_the_same_answer_to_other_words_is_one():
    queries = (
        "reset the password",
        "password reset how",
        "how to reset password",
        "forgot my password",
        "new password",
    )
    assert stuck_at([call("search", {"q": q}, "page 4, page 9") for q in queries]) == 5


def test_the_same_documents_in_another_order_are_the_same_answer():
    answers = ("doc-a doc-b doc-c", "doc-c doc-b doc-a", "doc-b doc-a doc-c", "doc-a doc-c doc-b", "doc-c doc-a doc-b")
    queries = ("login", "sign-in", "signin", "authentication", "auth")
    calls = [call("search_docs", {"q": q}, answer) for q, answer in zip(queries, answers, strict=True)]
    assert stuck_at(calls) == 5


def test_writing_many_things_with_the_same_answer_is_work():
    calls = [call("send_email", {"to": f"user {n}", "text": "hello there"}, "sent") for n in range(12)]
    assert verdicts(calls) == []


def test_empty_results_with_news_between_are_work():
    calls = []
    for n, word in enumerate("abcdefghijkl"):
        calls += [call("search", {"q": word}, "[]")]
        calls += [call("read", {"p": f"{word}{i}"}, f"text {word} {i} {n}") for i in range(2)]
    assert stuck_at(calls) is None


def test_thinking_gives_no_result_by_design():
    thoughts = [call("think", {"thought": f"what about {word} then"}, "") for word in "abcdefg"]
    assert verdicts(thoughts) == []


# Without results, without arguments


def test_without_results_only_warnings():
    engine = Engine()
    assert verdicts([call(result=None)] * 8, engine) == [("repeat", "warn", 3)]
    assert engine.mode == "args_only"


def test_four_of_the_last_ten_without_results():
    calls = []
    for word in "abcd":
        calls += [call(result=None), call("other", {"x": word}, None)]
    assert verdicts(calls) == [("window", "warn", 7)]


def test_without_arguments_no_verdict():
    engine = Engine()
    assert verdicts([call(args=MISSING)] * 9, engine) == []
    assert engine.mode == "none"


def test_an_input_hash_is_as_good_as_arguments():
    calls = [ToolCall("get", MISSING, input_hash="aa", result=Evidence.of("x")) for _ in range(4)]
    assert stuck_at(calls) == 4


# What the caller counts


def test_what_a_repeat_brought():
    engine = Engine()
    seen = []
    for one in (call(), call(), call(result="other"), call(result=None), call(), call("new")):
        engine.observe(one)
        seen.append(engine.last.repeat_result)
    assert seen == [None, "same", "changed", "unknown", "unknown", None]


def test_stale_calls_count_rounds_of_the_same_answer():
    engine = Engine()
    seen = []
    for one in (call(), call(), call("edit", {"p": 1}, "applied"), call(), call(), call()):
        engine.observe(one)
        seen.append(engine.last.stale_calls)
    assert seen == [0, 2, 0, 0, 2, 3]


def test_a_call_that_is_made_again_after_much_news_is_not_stale():
    engine = Engine()
    seen = []
    for number in range(30):
        looked_up = call("read_file", {"path": "plan.md"}, "the plan")
        engine.observe(looked_up if number % 10 == 0 else call("search", {"q": number}, f"article {number}"))
        seen.append(engine.last.stale_calls)
    assert max(seen) == 1
    assert engine.verdict is None


def test_whether_the_latest_call_goes_on_with_a_stuck_pattern():
    engine = Engine()
    seen = []
    for one in [*[call()] * 6, call("other", result="fresh news")]:
        engine.observe(one)
        seen.append(engine.last.stuck)
    assert seen == [False, False, False, True, True, True, False]


def test_one_standstill_is_one_verdict_of_each_severity():
    steps = [call("read", {"p": p}, f"text {p}") for p in "ab"] * 20
    assert [severity for _, severity, _ in verdicts(steps)] == ["warn", "stuck"]


def test_the_worst_verdict_stays():
    engine = Engine()
    verdicts([*[call()] * 5, call("other", result="news")], engine)
    assert engine.verdict is not None
    assert engine.verdict.severity == "stuck"


# Replies


def test_a_monologue():
    engine = Engine()
    assert engine.observe_reply(Evidence.of("I will look into it.")) is None
    assert engine.observe_reply(Evidence.of("I will look into it.")) is None
    found = engine.observe_reply(Evidence.of("I will look into it."))
    assert found is not None
    assert (found.kind, found.severity) == ("monologue", "stuck")


def test_a_call_between_ends_a_monologue():
    engine = Engine()
    for number in range(6):
        assert engine.observe_reply(Evidence.of("Looking.")) is None
        engine.observe(call("read", {"p": number}, f"text {chr(97 + number)}"))


def test_other_thresholds():
    assert stuck_at([call()] * 6, Engine(thresholds=Thresholds(stale_stuck=6))) == 6


def test_another_reason_is_no_other_hand_over():
    calls = [
        call(f"transfer_to_{('critic', 'writer')[n % 2]}", {"reason": reason}, "transferred")
        for n, reason in enumerate(("please", "done", "look", "better", "again", "now", "so", "there"))
    ]
    assert stuck_at(calls) is not None


def test_another_reason_is_another_note_on_one_file():
    calls = [call("report_issue", {"file": "a.py", "reason": word}, "recorded") for word in "abcdefgh"]
    assert verdicts(calls) == []

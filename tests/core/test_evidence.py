import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.core import evidence as evidence_module
from turnwatch.core.evidence import Evidence, evidence_of, normalise, reads_as_nothing, same_page, simhash

PAGE = " ".join(f"word{letter} stands here" for letter in "abcdefghijklmnopqrstuvwxyz")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ran 12 tests in 0.034s", "ran 12 tests in 1.2 s"),
        ("at 2026-01-03T10:11:12Z", "at 2026-02-13 23:59:01.55"),
        ("started 10:11:12", "started 23:01:02"),
        ("object at 0x7f00aa11", "object at 0x55deadbeef"),
        ("run 0b0f8c9e-9b1e-4d35-8f5e-0d5c8d8c2c11 done", "run 9e8d7c6b-0a1b-4c2d-8e3f-112233445566 done"),
        ("commit 1f2e3d4c5b6a", "commit 9a8b7c6d5e4f"),
        ("worker pid 4411 exited", "worker pid 91 exited"),
        ("wrote /tmp/tmpab12cd/out.txt", "wrote /tmp/tmpzz99yy/out.txt"),
        ("one  two\n three", "one two three"),
        ("Apr 30 08:32 report", "May 1 11:05 report"),
        ('{"exit_code": 1, "duration_seconds": 0.1}', '{"exit_code": 1, "duration_seconds": 12}'),
        ("done, elapsed=3", "done, elapsed=4.5"),
    ],
)
def test_what_changes_between_two_runs_by_itself_is_normalised_away(one, other):
    assert Evidence.of(one).exact != Evidence.of(other).exact
    assert Evidence.of(one).normal == Evidence.of(other).normal


@pytest.mark.parametrize(
    ("one", "other"),
    [("3 failed", "2 failed"), ("rows 0..49", "rows 50..99"), ("price is 1203", "price is 375"), ("v1", "v2")],
)
def test_plain_numbers_are_not_normalised_away(one, other):
    assert Evidence.of(one).normal != Evidence.of(other).normal


def test_only_numbers_and_ids_differ():
    assert Evidence.of("order A17 of 3").digitless == Evidence.of("order B9 of 12").digitless
    assert Evidence.of("order A17").digitless != Evidence.of("refund A17").digitless
    assert Evidence.of("no number here").digitless is None
    assert Evidence.of("0 2 4 2\n0 0 2 8\n4 4 2 2\n0 0 0 2").digitless is None


def test_simhash_tells_the_same_page_from_another():
    almost = PAGE.replace("worda stands here", "worda stood here")
    other = " ".join(f"item{letter} costs nothing" for letter in "abcdefghijklmnopqrstuvwxyz")
    assert same_page(simhash(PAGE), simhash(almost))
    assert not same_page(simhash(PAGE), simhash(other))


def test_short_texts_have_no_simhash():
    assert simhash("one two three four five six seven") is None
    assert simhash("one two three four five six seven eight") is not None
    assert not same_page(None, None)


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "[]", "{}", "null", "None", '{"results": [], "total": 0}', "No results found.", "0 rows",
     "<output>\n</output>", "no matching documents", "Nothing found", "Not found", "()"],
)  # fmt: skip
def test_reads_as_nothing(text):
    assert reads_as_nothing(text)
    assert Evidence.of(text).empty


@pytest.mark.parametrize(
    "text",
    ["Status: in progress", '{"id":7,"state":"training"}', "<status>running</status>", "(session 2 still running)",
     "Process running with session ID 7", '{"done": false, "left": 3}', "Not yet ready", "waiting_for_review",
     "No new output", "STATUS: RUNNING (41%)"],
)  # fmt: skip
def test_says_that_it_is_not_done_yet(text):
    assert Evidence.of(text).pending


@pytest.mark.parametrize(
    "text",
    ["done", "port: 8080, running on localhost", "2 busy", "pending", '{"order": 7, "status": "pending"}', "running",
     "def run():\n    running = True", "Status: ok", "", '{"done": true}', "Status: running " + "x" * 200],
)  # fmt: skip
def test_says_nothing_of_being_done(text):
    assert not Evidence.of(text).pending


def test_a_word_that_it_worked_is_as_good_as_silence():
    for text in ("", "\n", "null", "ok", "Done.", '{"success": true}', '{"status": "ok", "error": null, "code": 200}'):
        assert Evidence.of(text).silent
    for text in ("no results", "[]", '{"data": []}', "[1]", '{"id": 7}', "ok then", "0 rows"):
        assert not Evidence.of(text).silent


_PIECES = [
    *("no", "not found", "nothing", "null", "0", "rows", "results", "matching", "for", "n/a", "empty set", "there are"),
    *("data", "undefined", "the", "x", "{", "}", "[", "]", '"a"', ":", ",", "<output>", "</b>", "<", " ", "\n", "!"),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_what_is_told_from_nothing_by_its_beginning_is_so_by_its_whole(text):
    read = reads_as_nothing(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evidence_module, "_BEGINS_AS_NOTHING", re.compile(""))
        assert reads_as_nothing(text) == read


def test_a_long_beginning_of_markup_is_passed_over_once():
    assert not reads_as_nothing("(" * 200 + "x")


@pytest.mark.parametrize(
    "text", ["ok", "done", "saved", "[1]", '{"a": 1}', "true", "0 files a", "12", "no", "Not found in cache, fetched"]
)
def test_reads_as_something(text):
    assert not Evidence.of(text).empty


@pytest.mark.parametrize(
    "text",
    ["Error: no such order", "ERROR:\nnothing replaced", "Invalid action!", "ValueError: bad", "Traceback (most"],
)
def test_a_text_that_begins_with_a_failure_is_one(text):
    assert Evidence.of(text).failure


@pytest.mark.parametrize("text", ["ok", "12 errors were fixed", "the error is gone", "[ERRORS]: 0", ""])
def test_a_text_that_mentions_errors_is_none(text):
    assert not Evidence.of(text).failure


@pytest.mark.parametrize(
    "text",
    ["unknown tool 'read'", "Tool grepp not found", "no such function: x", "ToolNotFound", "'x' is not a valid tool"],
)
def test_names_unknown_tool(text):
    assert Evidence.of(text).names_unknown_tool


@pytest.mark.parametrize("text", ["file not found", "invalid function argument", "the tool ran out of memory"])
def test_other_errors_do_not_name_an_unknown_tool(text):
    assert not Evidence.of(text).names_unknown_tool


class Unprintable:
    def __repr__(self):
        raise RuntimeError


def test_any_object_is_evidence():
    circular: list = []
    circular.append(circular)
    for result in (None, b"\xff\xfe", {1: 2}, {"a": {3, 1, 2}}, object(), circular, 2**80, "\ud800", Unprintable()):
        evidence = Evidence.of(result)
        assert evidence.exact == Evidence.of(result).exact
        assert evidence.normal == Evidence.of(result).normal


def test_equal_objects_are_equal_evidence_whatever_their_order_or_address():
    assert Evidence.of({"a": 1, "b": {2, 1}}).exact == Evidence.of({"b": {1, 2}, "a": 1}).exact
    assert Evidence.of(object()).exact == Evidence.of(object()).exact


def test_a_very_long_text_is_compared_exactly():
    long = "x1 " * 40_000
    assert Evidence.of(long).normal == Evidence.of(long).exact
    assert Evidence.of(long).normal != Evidence.of(long + "y").normal


def test_digests_of_a_source_are_taken_as_they_are():
    evidence = Evidence.from_digests("aa11", "bb22", "00000000000000ff", head="[]", length=2)
    assert (evidence.exact, evidence.normal, evidence.simhash) == ("aa11", "bb22", 255)
    assert evidence.empty
    assert not Evidence.from_digests("aa11", head="[]", length=900).empty


@given(st.text(max_size=400))
def test_digests_and_text_agree_on_what_is_read_from_the_text(text):
    of_text = Evidence.of(text)
    published = Evidence.from_digests("x", head=text[:200], length=len(text))
    assert published.empty == of_text.empty
    assert published.failure == of_text.failure
    assert published.digitless == of_text.digitless
    assert published.names_unknown_tool == of_text.names_unknown_tool


@given(st.text())
def test_normalising_never_fails_and_is_stable(text):
    assert normalise(text) == normalise(text)
    assert Evidence.of(text).normal == Evidence.of(text).normal


class Response:
    def __repr__(self) -> str:
        return "<Response [200]>"


@dataclasses.dataclass
class Row:
    name: str


@pytest.mark.parametrize("hidden", [iter([1]), (n for n in [1]), object(), Response(), [Response()], {"a": Response()}])
def test_an_object_that_does_not_show_what_it_holds_is_no_evidence(hidden):
    assert evidence_of(hidden) is None


@pytest.mark.parametrize(
    "shown", ["<html>", b"<html>", ["<html>"], [b"<html>"], None, [], 1, {1, 2}, Row("<x>"), ValueError("x")]
)
def test_everything_else_is(shown):
    evidence = evidence_of(shown)
    assert evidence is not None
    assert evidence.exact == Evidence.of(shown).exact


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("DECember 3: PROCESS #44 took 7MINS", "<date>: <pid> took <duration>"),
        ("İstanbul, March 12, 2024 10:11", "İstanbul, <date> 10:11"),
        ("at 12:11:10,5 12:11:10", "at <clock> <clock>"),
        ("(tmp/a-b.c),/var/folders/x/y tmpabc123", "(<temporary>),/<temporary> <temporary>"),
        ("abcdef1 facade7 facades 1234567 0xFF", "<hexadecimal> <hexadecimal> facades 1234567 <hexadecimal>"),
        ("trocess 12 phread 3 varchar/tmp xtmp/a x5s 5sx _5s", "trocess 12 phread 3 varchar/tmp xtmp/a x5s 5sx _5s"),
    ],
)
def test_what_is_volatile_begins_and_ends_as_a_word_in_any_case(text, normal):
    assert normalise(text) == normal


def test_a_simhash_is_the_same_for_words_that_were_and_were_not_met_before():
    words = [f"word{number}" for number in range(40_000)]  # more than are remembered
    first = [simhash(" ".join(words[at : at + 400])) for at in range(0, 40_000, 400)]
    assert [simhash(" ".join(words[at : at + 400])) for at in range(0, 40_000, 400)] == first
    assert simhash("the quick brown fox jumps over the lazy dog and goes home") == 0x175A52107003D01B


def test_bytes_that_are_no_text_are_told_apart_as_text_is():
    picture, other = b"\x89PNG\xff\xfe", b"\x89PNG\xff\xfd"
    assert Evidence.of(picture).exact == Evidence.of(bytearray(picture)).exact != Evidence.of(other).exact
    assert Evidence.of({"image": picture}).exact != Evidence.of({"image": other}).exact
    assert Evidence.of("käse".encode()).exact == Evidence.of("käse").exact


@pytest.mark.parametrize(
    "wrapped",
    [
        [{"type": "text", "text": "no such file"}],
        {"content": [{"type": "text", "text": "no such file"}], "isError": True},
        '{"content": [{"type": "text", "text": "no such file"}]}',
        '[{"type":"text","text":"no such file"}]',
        '{"output":"no such file","metadata":{"exit_code":0,"duration_seconds":0.4}}',
    ],
)
def test_what_a_result_is_wrapped_in_does_not_count(wrapped):
    assert Evidence.of(wrapped).exact == Evidence.of("no such file").exact


@pytest.mark.parametrize("text", ['{"content": [', '{"output": "a"}', '[{"type":"text","url":"x"}]', '{"content": []}'])
def test_what_only_begins_like_a_wrapper_is_the_result(text):
    assert Evidence.of(text).head == text


def test_a_wrapped_command_that_failed_differs_from_one_that_did_not():
    results = [f'{{"output":"","metadata":{{"exit_code":{code}}}}}' for code in (0, 1)]
    assert len({Evidence.of(result).exact for result in results}) == 2


def test_what_an_object_would_have_to_fetch_is_left_alone():
    class Response:
        @property
        def content(self):
            raise AssertionError

    assert Evidence.of(Response()).head


def test_what_an_error_says_beyond_the_words_of_its_call():
    texts = {name: Evidence.of(f"Permission denied for write: {name}.txt") for name in ("ant", "bee")}
    assert len({text.beyond("write", {"path": f"{name}.txt"}) for name, text in texts.items()}) == 1
    assert Evidence.of("ant.txt").beyond("write", {"path": "ant.txt"}) is None

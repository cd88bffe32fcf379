"""The JSON values of a stream: lines, documents, lists, and what is none of them."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.sources import json_values
from turnwatch.sources.json_values import CUT_OFF, NO_OBJECT, NOT_JSON, TOO_LONG, BrokenLine, read_values

BROKEN = (NO_OBJECT, CUT_OFF, NOT_JSON)
VALUE = {"text": 'a "quoted" {bracket] \\', "list": [1, {"deep": ["]"]}], "empty": {}}


def beginning(reason: str) -> str:
    return next((known for known in BROKEN if reason.startswith(known)), reason)


def read(content: bytes, **how: bool) -> list[object]:
    return [
        (found.line, beginning(found.reason)) if isinstance(found, BrokenLine) else (found.line, found.value)
        for found in read_values(io.BytesIO(content), **how)
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_values_have_the_numbers_of_their_lines(end):
    text = end.join(["", '{"a": 1}', "", '[{"b": 2}]', '{"c": 3}'])
    assert read(text.encode()) == [(2, {"a": 1}), (4, [{"b": 2}]), (5, {"c": 3})]


@pytest.mark.parametrize("indent", [0, 1, 4])
@pytest.mark.parametrize("between", ["\n", "", ",\n", "\n\n"])
def test_values_written_over_several_lines_follow_each_other(indent, between):
    text = json.dumps(VALUE, indent=indent)
    lines = text.count("\n") + between.count("\n")
    assert read(between.join([text] * 3).encode()) == [(1 + number * lines, VALUE) for number in range(3)]


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_list_over_several_lines_is_given_value_by_value_unless_told_otherwise(indent):
    text = "[\n" + ",\n".join(json.dumps(VALUE, indent=indent) for _ in range(3)) + "\n]\n" + '{"behind": 1}\n'
    lines = json.dumps(VALUE, indent=indent).count("\n") + 1
    assert read(text.encode())[:3] == [(2 + number * lines, VALUE) for number in range(3)]
    assert read(text.encode(), split_lists=False) == [(1, [VALUE] * 3), (3 + 3 * lines, {"behind": 1})]


@given(st.lists(st.tuples(st.sampled_from([None, 0, 3]), st.dictionaries(st.text(max_size=9), st.text(max_size=9)))))
def test_whatever_is_written_is_read(values):
    text = "\n".join(json.dumps(value, indent=indent) for indent, value in values)
    assert [value for _, value in read(text.encode())] == [value for _, value in values]
    written = "[\n" + ",\n".join(json.dumps(value, indent=indent) for indent, value in values) + "\n]"
    assert [value for _, value in read(written.encode()) if value != []] == [value for _, value in values]


def test_what_only_a_patient_parser_reads_is_read():
    assert read(b'\xef\xbb\xbf{"a": 1}\n{"cut": "\\ud83d"}\n') == [(1, {"a": 1}), (2, {"cut": "\ud83d"})]
    assert read(b'\xef\xbb\xbf[\n{"a": 1}\n]') == [(2, {"a": 1})]


@pytest.mark.parametrize(
    "broken",
    [
        '{"cut": "off in',
        '{"cut":',
        '{"cut": [',
        '{"cut": {',
        '{"cut": 1,',
        '[{"cut": 1},',
        "text",
        "1",
        '"text"',
        "\0\0\0",
    ],
)
@pytest.mark.parametrize("split_lists", [True, False])
def test_a_broken_line_keeps_nothing_else_from_being_read(broken, split_lists):
    text = "\n".join(['{"a": 1}', broken, '{"b": 2}', '{"c": 3}', broken, '[{"d": 4}]', '{"e": 5}']) + "\n"
    found = read(text.encode(), split_lists=split_lists)
    values = [each for each in found if each[1] not in BROKEN]
    if broken.startswith("[{"):  # the part of a list that came before the cut was read
        values = [each for each in values if each[1] not in ({"cut": 1}, [{"cut": 1}])]
    assert values == [(1, {"a": 1}), (3, {"b": 2}), (4, {"c": 3}), (6, [{"d": 4}]), (7, {"e": 5})]
    reported = {line for line, value in found if value in BROKEN}
    assert reported == {2, 5} or (reported and split_lists and broken.startswith("[{"))


def test_a_document_that_is_cut_off_is_one_line_and_what_was_whole_is_read():
    text = json.dumps([VALUE] * 50, indent=2)
    found = read(text[: len(text) * 3 // 4].encode())
    assert [value for _, value in found[:-1]] == [VALUE] * len(found[:-1])
    assert len(found) > 30
    assert found[-1][1] == CUT_OFF
    assert read(text[:-20].encode(), split_lists=False) == [(1, [VALUE] * 49), (1, CUT_OFF)]


def test_brackets_that_do_not_match_are_one_broken_value():
    assert read(b'{\n"a": [}\n]\n{\n"b": 2\n}\n')[-1] == (4, {"b": 2})


@pytest.fixture
def at_most_2000_bytes(monkeypatch):
    monkeypatch.setattr(json_values, "MAX_VALUE_BYTES", 2000)
    monkeypatch.setattr(json_values, "_SMALLEST_PIECE", 100)


LONG = {"text": 'long \\"' * 400, "list": [{"a": 1}] * 100}


@pytest.mark.usefixtures("at_most_2000_bytes")
@pytest.mark.parametrize("indent", [None, 1])
def test_a_value_that_is_too_long_is_passed_over(indent):
    long = json.dumps(LONG, indent=indent)
    behind = long.count("\n") + 2
    assert read(f'{long}\n{{"b": 2}}\n'.encode()) == [(1, TOO_LONG), (behind, {"b": 2})]


@pytest.mark.usefixtures("at_most_2000_bytes")
@pytest.mark.parametrize("newline", ["\n", ""])
def test_of_a_list_that_is_too_long_every_value_is_read_that_is_not(newline):
    members = [{"n": number} for number in range(1000)]
    members.insert(500, LONG)
    text = f"[{newline}" + f",{newline}".join(map(json.dumps, members)) + f"{newline}]\n" + '{"behind": 1}'
    found = [value for _, value in read(text.encode())]
    assert found == [*members[:500], TOO_LONG, *members[501:], {"behind": 1}]
    assert [value for _, value in read(text.encode(), split_lists=False)] == [TOO_LONG, {"behind": 1}]


@pytest.mark.usefixtures("at_most_2000_bytes")
def test_behind_a_broken_line_that_looks_like_a_document_many_lines_are_read():
    text = '{"cut": [{\n' + "\n" + '{"a": 1}\n' * 1000
    assert read(text.encode()) == [(1, CUT_OFF), *((number + 3, {"a": 1}) for number in range(1000))]


def test_a_log_of_text_is_not_read_as_a_document():
    stream = io.BytesIO(b"[2026-01-05] INFO started\n" * 1000)
    assert next(read_values(stream)) == BrokenLine(1, "not JSON at column 6: Expecting ',' delimiter")
    assert stream.tell() < 100


@pytest.mark.parametrize("lines", [['{"a": 1}', '{"b": 2}'], [b'{"a": 1}\n', b'{"b": 2}']])
def test_lines_are_read_as_well_as_streams(lines):
    assert [found.value for found in read_values(lines)] == [{"a": 1}, {"b": 2}]


def said(content: bytes, **how: bool) -> list[str]:
    return [
        f"{found.line}: {found.reason}"
        for found in read_values(io.BytesIO(content), **how)
        if isinstance(found, BrokenLine)
    ]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"a": 1}\n{"a": "xyz', "2: cut off at column 10: the JSON that begins here is not closed"),
        (b'{"a": 1}\n{"a" 1}', "2: not JSON at column 6: Expecting ':' delimiter"),
        (b'  {"a": 1} x\n', "1: not JSON at column 12: Extra data"),
        (b'  {"a": 1]\n', "1: not JSON at column 10: Expecting ',' delimiter"),
        (b'{"a": "\xff"}\n', "1: not JSON at byte 8: no UTF-8"),
        (b"{garbage\n", "1: not JSON at column 2: Expecting property name enclosed in double quotes"),
        (b"garbage\n", "1: not JSON: a line or a document must be an object or a list"),
        (b"7\n", "1: neither an object nor a list, as a line or a document must be"),
        (b'{\n"a": 1,\n"b": [\n2', "1: cut off in line 4: the JSON that begins here is not closed"),
        (b'{\n"a": 1,\n"b": oh\n}\n', "1: not JSON in line 3: Expecting value"),
        (b'\n{"a":\n{"a": 1}\n', "2: cut off: the JSON that begins here is not closed"),
        (
            b'[\n{"a": 1},\n{"b": 2},\n',
            "1: cut off in line 3: the JSON that begins here is not closed; what is whole before that was read",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_place_and_without_the_content(content, what):
    assert said(content) == [what]


@pytest.mark.parametrize("split_lists", [True, False])
def test_wherever_a_value_is_cut_off_that_is_said(split_lists):
    value = {
        "text": 'a "\\\u00e9\n',
        "numbers": [1, -2.5, 1e300, float("-inf"), float("nan")],
        "words": [True, False, None],
    }
    for text in (json.dumps(value), json.dumps(value, indent=1), json.dumps([value], indent=1)):
        for cut in range(1, len(text)):
            found = read(text[:cut].encode(), split_lists=split_lists)
            assert found[-1] in ((1, CUT_OFF), (2, CUT_OFF)), text[:cut]


def test_a_broken_value_near_the_end_of_a_list_is_no_cut():
    assert read(b'[\n{"a" 1},\n{"b": 2}\n]') == [(2, NOT_JSON), (3, {"b": 2})]

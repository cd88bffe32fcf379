"""The JSON values of a file: lines, documents, and what is neither."""

from __future__ import annotations

import io
import json

import pytest

from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.transcripts.records import read_records

VALUE = {"messages": [{"role": "user", "content": "Hi, [you]"}, {"role": "assistant", "content": None}]}


def values(content: bytes) -> list[object]:
    return [f"broken {r.line}" if isinstance(r, BrokenLine) else r for r in read_records(io.BytesIO(content))]


@pytest.mark.parametrize("indent", [0, 1, 4])
@pytest.mark.parametrize("value", [VALUE, [VALUE], [VALUE, VALUE], [{}]])
def test_an_indented_document_is_one_value(indent, value):
    assert values(b"\xef\xbb\xbf" + json.dumps(value, indent=indent).encode() + b"\n") == [(1, value)]


def test_lines_keep_their_numbers_and_broken_ones_are_reported():
    assert values(b'{"cut": [\n\n{"a": 1}\nnot json\n[2]\n') == ["broken 1", (3, {"a": 1}), "broken 4", (5, [2])]
    assert values(b"") == []


def test_a_long_text_is_not_read_as_a_document():
    stream = io.BytesIO(b"[2026-01-05] INFO started\n" * 1000)
    assert isinstance(next(read_records(stream)), BrokenLine)
    assert stream.tell() < 100

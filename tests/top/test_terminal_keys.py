"""What a terminal sends becomes keys, in whatever pieces it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.top.keys import KeyReader


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"ab\r\x7f\t", ["a", "b", "enter", "backspace", "tab"]),
        (b"\x1b[A\x1b[B\x1bOC\x1b[5~", ["up", "down", "right", "pageup"]),
        ("é日".encode(), ["é", "日"]),
        (b"\x1b[1;5Cx", ["x"]),  # a key that means nothing here
        (b"\x1bq", ["escape", "q"]),
        (b"\x1b[\x01x", ["\x01", "x"]),
    ],
)
def test_keys(data, keys):
    assert KeyReader().take(data) == keys


def test_an_escape_by_itself_is_known_when_nothing_follows():
    reader = KeyReader()
    assert reader.take(b"\x1b") == []
    assert reader.is_waiting
    assert reader.nothing_followed() == ["escape"]
    assert not reader.is_waiting


@pytest.mark.untraced
@given(
    st.lists(st.sampled_from([b"a", "日".encode(), b"\x1b[A", b"\x1b[6~", b"\x1bOB", b"\t"]), max_size=20), st.data()
)
def test_pieces_make_no_difference(parts, data):
    whole = b"".join(parts)
    reader, pieces = KeyReader(), []
    at = 0
    while at < len(whole):
        step = data.draw(st.integers(1, 3))
        pieces += reader.take(whole[at : at + step])
        at += step
    assert pieces == KeyReader().take(whole)


@pytest.mark.untraced
@given(st.binary(max_size=60))
def test_no_bytes_are_too_odd(data):
    reader = KeyReader()
    assert all(isinstance(key, str) and key for key in reader.take(data) + reader.nothing_followed())

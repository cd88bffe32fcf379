"""Which name was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import turnwatch
from turnwatch.near_names import did_you_mean, unknown_key


@pytest.mark.parametrize(
    ("name", "question"),
    [("max_stepz", "did you mean max_steps?"), ("maxsteps", "did you mean max_steps?"), ("colour", ""), ("", "")],
)
def test_the_nearest_name_is_asked_after_and_none_where_none_is_near(name: str, question: str):
    assert did_you_mean(name, ["max_usd", "max_steps"]) == question


def test_a_prefix_makes_no_name_near():
    known = ["TURNWATCH_SPANS", "TURNWATCH_HASH_KEY"]
    assert did_you_mean("TURNWATCH_HASHKEY", known, "TURNWATCH_") == "did you mean TURNWATCH_HASH_KEY?"
    assert did_you_mean("TURNWATCH_XY", known, "TURNWATCH_") == ""


def test_an_unknown_key_names_the_allowed_ones_in_their_order():
    assert unknown_key("ouput", ("input", "output")) == "unknown key; allowed are input, output; did you mean output?"
    assert unknown_key("colour", ("input", "output")) == "unknown key; allowed are input, output"


def test_the_question_is_worded_in_one_place():
    files = Path(turnwatch.__file__).parent.rglob("*.py")
    assert {file.name for file in files if "did you mean" in file.read_text()} == {"near_names.py"}

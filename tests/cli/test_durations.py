from __future__ import annotations

import pytest
import typer

from turnwatch.cli.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2s", 2), ("500ms", 0.5), ("1m", 60), ("1.5", 1.5), ("1 h", 3600), ("1d", 86_400), (" 50ms ", 0.05)],
)
def test_a_duration_is_a_number_with_a_unit_or_seconds(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "s", "-1s", "1e3", "1.s", "٣s", "5 min", "1m30s", "nan"])
def test_what_is_none_is_refused(text):
    with pytest.raises(typer.BadParameter, match="such as 500ms, 15s or 1m"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["0s", "0", "49ms", "25h", "2d", "9" * 400 + "d"])
def test_what_is_too_short_or_too_long_is_refused(text):
    with pytest.raises(typer.BadParameter, match="50ms at least and 1d at most"):
        seconds_of(text)

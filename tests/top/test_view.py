"""What each key changes."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from turnwatch.top.columns import KEYS
from turnwatch.top.view import PANES, View, after


def pressed(*keys, view=None):
    return reduce(after, keys, view or View())


def test_s_goes_through_every_column_and_comes_round():
    view, seen = View(), []
    for _ in KEYS:
        seen.append(view.sort)
        view = after(view, "s")
    assert sorted(seen) == sorted(KEYS)
    assert view == View()
    assert pressed("<", ">") == View()


def test_a_column_has_a_key_of_its_own_and_pressed_again_is_reversed():
    assert pressed("D").sort == "usd_per_hour"
    assert pressed("D", "D").is_reversed
    assert not pressed("D", "D", "D").is_reversed
    assert pressed("r").is_reversed


def test_in_the_filter_keys_are_text():
    view = pressed("/", "q", "p", "s", "x", "backspace")
    assert (view.filter, view.is_typing, view.has_quit, view.is_paused) == ("qps", True, False, False)
    assert pressed("enter", view=view).filter == "qps"
    assert pressed("enter", "q", view=view).has_quit
    assert pressed("escape", view=view) == View()


def test_escape_clears_the_filter_afterwards_too():
    assert pressed("/", "a", "enter", "escape") == View()


def test_help_closes_by_the_keys_that_would_quit():
    assert pressed("?").is_helping
    assert pressed("?", "q") == View()
    assert pressed("?", "escape") == View()


def test_pause_and_panes():
    assert pressed("p").is_paused
    assert pressed(" ", " ") == View()
    assert [pressed(*["tab"] * presses).pane for presses in range(4)] == [*PANES, PANES[0]]


def test_scrolling_stays_inside():
    assert pressed("up", "pageup", "left") == View()
    assert pressed("down", "down", "up").offset == 1
    assert pressed(*["right"] * 100).shift < len(KEYS) - 2


@given(
    st.lists(
        st.sampled_from(
            [
                *"qsSr<>/pNAILRCETD?hjk \x01é",
                "escape",
                "enter",
                "backspace",
                "tab",
                "up",
                "down",
                "left",
                "right",
                "pageup",
                "home",
            ]
        )
    )
)
def test_no_keys_are_too_odd(keys):
    view = pressed(*keys)
    assert view.sort in KEYS
    assert view.offset >= 0

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from turnwatch.cli.folded_name import FoldedName, lines_of


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("search_orders", 20, ["search_orders"]),
        ("search_customer_orders", 16, ["search_customer_", "orders"]),
        ("support-bot/eu west", 8, ["support-", "bot/eu", "west"]),
        ("aaaaaaaaaa", 4, ["aaaa", "aaaa", "aa"]),
        ("日本語", 4, ["日本", "語"]),
        ("", 4, []),
    ],
)
def test_a_name_is_broken_after_its_marks(name, width, lines):
    assert lines_of(name, width) == lines


@given(st.text(st.sampled_from("ab_-./: 日"), max_size=40), st.integers(2, 20))
def test_every_line_fits_and_nothing_but_spaces_is_lost(name, width):
    lines = lines_of(name, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")


def test_a_name_does_nothing_to_markup_or_terminal():
    console = Console(file=StringIO(), width=30, force_terminal=True, color_system=None)
    table = Table(box=None)
    table.add_column("tool")
    table.add_row(FoldedName("[bold]x\x1b[2J"))
    console.print(table)
    assert isinstance(console.file, StringIO)
    assert "[bold]x�[2J" in console.file.getvalue()

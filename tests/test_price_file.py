"""A user's own prices: read once for each version of the file, and its faults named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from turnwatch import price_file as price_file_module
from turnwatch import yaml_file
from turnwatch.core.events import Usage
from turnwatch.core.watch import Watch
from turnwatch.errors import SettingsError
from turnwatch.price_file import read_price_file
from turnwatch.settings import Settings


@pytest.fixture
def price_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "prices.yaml"
        path.write_text(text)
        return path

    return write


def test_prices_are_the_digits_as_written_by_model_in_lower_case(price_file: Callable[[str], Path]):
    prices = read_price_file(price_file("House/Llama: {input: 0, output: 0.3, cache_read: 0.003}\n"))

    assert {kind: str(price) for kind, price in prices["house/llama"].items()} == {
        "input": "0",
        "output": "0.3",
        "cache_read": "0.003",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n  input: 1\n  output: x\n", "line 3: a.output: wants a number"),
        ("a:\n  input: 1\n  ouput: 2\n", "line 3: a.ouput: unknown key"),
        ("a: {input: 1, ouput: 2}\n", "did you mean output?"),
        ("b: {input: 1, output: 1}\na: {input: 1}\n", "line 2: a: output is missing"),
        ("a: 5\n", "line 1: a: wants a mapping"),
        ("a: {input: -1, output: .inf}\n", "line 1: a.output: wants a number"),
        ("a: {input: true, output: 1}\n", "line 1: a.input: wants a number"),
        ("- a\n", "line 1: the top level must be a mapping"),
        ("a: {input: 1, output: 1}\na: {input: 2, output: 1}\n", "line 2: a stands here and on line 1"),
    ],
)
def test_a_fault_in_a_price_file_is_named_by_key_file_and_line(
    price_file: Callable[[str], Path], text: str, message: str
):
    path = price_file(text)

    with pytest.raises(SettingsError) as caught:
        Watch(Settings(prices_file=str(path)))

    assert message in str(caught.value)
    assert all(line.startswith(str(path)) for line in str(caught.value).splitlines())


def test_a_price_file_is_read_once_for_each_version_of_it(
    price_file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
):
    read: list[str] = []
    monkeypatch.setattr(
        price_file_module, "read_yaml_file", lambda path: read.append(path) or yaml_file.read_yaml_file(path)
    )
    path = price_file("gpt-4o: {input: 1, output: 1}\n")
    watches = [Watch(Settings(prices_file=str(path))) for _ in range(3)]

    assert {watch.prices.cost("openai", "gpt-4o", Usage(1_000_000)) for watch in watches} == {1.0}
    assert read == [str(path)]

    path.write_text("gpt-4o: {input: 22, output: 1}\n")
    assert Watch(Settings(prices_file=str(path))).prices.cost("openai", "gpt-4o", Usage(1_000_000)) == 22.0
    assert watches[0].prices.cost("openai", "gpt-4o", Usage(1_000_000)) == 1.0

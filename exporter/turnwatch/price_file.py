"""What a user's own price file says, read once for each version of it: every watch asks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from turnwatch.errors import SettingsError
from turnwatch.near_names import unknown_key
from turnwatch.yaml_file import YamlDocument, read_yaml_file

_ALLOWED: Final = ("input", "output", "cache_read", "cache_write", "reasoning")

ModelPrices = Mapping[str, Decimal]
"""USD per million tokens, by the kind of token."""


def read_price_file(path: str | Path) -> Mapping[str, ModelPrices]:
    """The prices of a file, by model name in lower case.

    The file is YAML or JSON, one model a key, prices in USD per million tokens::

        claude-sonnet-4-5: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}
        my-gateway/llama: {input: 0, output: 0}

    ``provider/model`` names one provider's model. ``input`` and ``output`` must be there; without cache_read or
    cache_write cached tokens cost what input does, without reasoning it costs what output does.

    Raises:
        SettingsError: It cannot be read, or a key or a value is wrong. The message names key, file and line.
    """
    return _read(str(path), _version(path))


def _version(path: str | Path) -> tuple[int, ...]:
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):  # why it cannot be read, reading it says
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


@functools.lru_cache(maxsize=8)
def _read(path: str, _version: tuple[int, ...]) -> Mapping[str, ModelPrices]:
    document = read_yaml_file(path)
    faults: list[str] = []
    prices = {name.lower(): _prices(document, name, entry, faults) for name, entry in document.data.items()}
    if faults:
        raise SettingsError("\n".join(faults))
    return prices


def _prices(document: YamlDocument, model: str, entry: Any, faults: list[str]) -> ModelPrices:
    if not isinstance(entry, dict):
        faults.append(f"{document.place((model,))}: {model}: wants a mapping with {', '.join(_ALLOWED)}")
        return {}
    values: dict[str, Decimal] = {}
    for key, value in entry.items():
        place = f"{document.place((model, key))}: {model}.{key}"
        if key not in _ALLOWED:
            faults.append(f"{place}: {unknown_key(key, _ALLOWED)}")
            continue
        price = _price(value)
        if price is None:
            faults.append(f"{place}: wants a number of USD per million tokens, 0 or more")
        else:
            values[key] = price
    faults += [
        f"{document.place((model,))}: {model}: {key} is missing" for key in ("input", "output") if key not in entry
    ]
    return values


def _price(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # The digits as written: Decimal(0.3) would be 0.299999999999999988898.
    price = Decimal(repr(value))
    return price if price.is_finite() and price >= 0 else None

"""What a YAML text of the pack or of a server says."""

from __future__ import annotations

from typing import Any, Final

import yaml

# libyaml's takes a tenth of the time, and is not in every build of PyYAML.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def value_of(text: str | bytes) -> Any:
    """The value of a text of one document.

    Raises:
        yaml.YAMLError: It is no YAML.
    """
    return yaml.load(text, _LOADER)


def values_of(text: str) -> list[Any]:
    """The values of all documents in a text.

    Raises:
        yaml.YAMLError: It is no YAML.
    """
    return list(yaml.load_all(text, _LOADER))

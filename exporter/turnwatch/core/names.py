"""What stands for a name: of an agent, a tool, a model or a conversation.

Names come from models and from other people's code, and end as labels and in UTF-8: one that is no text would
break every scrape from then on.
"""

from __future__ import annotations

from typing import Final

MAX_NAME: Final = 200


def is_plain_name(name: object) -> bool:
    """Whether a name can stay as it is; asked at every call."""
    return type(name) is str and len(name) <= MAX_NAME and name.isascii()


def name_of(value: object) -> str:
    """A value as a name of at most 200 characters that can be written as UTF-8; None is no name.

    Never raises an Exception.
    """
    name = "" if value is None else id_of(value)
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def id_of(value: object) -> str:
    """A value as an id that can be written as UTF-8, whole. Never raises an Exception."""
    try:
        text = str.__str__(value) if isinstance(value, str) else str(value)
    except Exception:
        text = type(value).__name__
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

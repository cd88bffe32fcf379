"""What a terminal sends, as the names of keys."""

from __future__ import annotations

import codecs
from typing import Final

_SEQUENCES: Final = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "[H": "home",
    "OH": "home",
    "[1~": "home",
    "[5~": "pageup",
    "[6~": "pagedown",
}
_NAMES: Final = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\t": "tab", "\x03": "q"}
_FINAL: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz~")


class KeyReader:
    """Turns bytes into keys. A character or an escape sequence may come in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    @property
    def is_waiting(self) -> bool:
        """Whether an escape has come that may be the key or the beginning of a sequence."""
        return bool(self._pending)

    def take(self, data: bytes) -> list[str]:
        """The keys that are complete now: single characters, or names such as "up" and "escape"."""
        text = self._pending + self._decoder.decode(data)
        self._pending = ""
        keys = []
        while text:
            if text[0] != "\x1b":
                keys.append(_NAMES.get(text[0], text[0]))
                text = text[1:]
                continue
            length = _sequence_length(text)
            if length is None:
                self._pending = text
                break
            if length == 1:
                keys.append("escape")
            elif (name := _SEQUENCES.get(text[1:length])) is not None:
                keys.append(name)
            text = text[length:]
        return keys

    def nothing_followed(self) -> list[str]:
        """The keys that a pending escape stands for when nothing more has come for a moment."""
        pending, self._pending = self._pending, ""
        return ["escape"] if pending else []


def _sequence_length(text: str) -> int | None:
    """How long the sequence at the beginning is; None as long as that is not known."""
    if len(text) == 1:
        return None
    if text[1] not in "[O":
        return 1
    for at in range(2, len(text)):
        if text[at] in _FINAL:
            return at + 1
        if not 0x20 <= ord(text[at]) <= 0x3F:  # no parameter: it breaks off here
            return at
    return None

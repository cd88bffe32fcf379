"""How a text is written in canonical form."""

from __future__ import annotations

import unicodedata
from json.encoder import encode_basestring


def quoted(text: str) -> str:
    """A text that is NFC and without lone surrogates, as orjson writes it."""
    return encode_basestring(text)


def normalized(text: str) -> str | None:
    """The text in NFC, or None when it holds a lone surrogate and so is no Unicode text."""
    if text.isascii():
        return text
    if not is_encodable(text):
        # Two halves of a pair, as some JSON writers leave them, are the character they say.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if not is_encodable(text):
            return None
    return unicodedata.normalize("NFC", text)


def is_encodable(text: str) -> bool:
    """Whether the text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""Undo a request's content encoding without letting a small body become a large one."""

from __future__ import annotations

import zlib
from typing import Final

from turnwatch.service.refusal import MALFORMED, TOO_LARGE, UNSUPPORTED, Refusal

_GZIP: Final = 16 + zlib.MAX_WBITS
# "deflate" means zlib's format; clients that send the bare stream are common enough to be read as well.
_WBITS: Final = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS)}

ENCODINGS: Final = ("identity", *_WBITS)

_PIECE_BYTES: Final = 16_384


def check_encoding(encoding: str) -> None:
    """Refuse an encoding that is not known.

    Raises:
        Refusal: unsupported.
    """
    if encoding not in ENCODINGS:
        known = ", ".join(ENCODINGS)
        raise Refusal(UNSUPPORTED, f"content-encoding is none of {known}", {"accept-encoding": known})


def decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    """The body as it was before it was encoded.

    Args:
        body: As received.
        encoding: One of ENCODINGS.
        limit: Largest size of the result, in bytes. Nothing larger is ever held.

    Raises:
        Refusal: malformed, or too large.
    """
    if encoding == "identity":
        return body
    attempts = _WBITS[encoding]
    for attempt, wbits in enumerate(attempts):
        try:
            return _inflated(body, wbits, limit)
        except zlib.error:
            if attempt + 1 == len(attempts):
                break
    raise Refusal(MALFORMED, f"the body is not valid {encoding}")


def _inflated(body: bytes, wbits: int, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    at = 0
    while True:
        stream = zlib.decompressobj(wbits)
        while not stream.eof:
            # What follows a stream is copied at its end: all the rest, where a body is of a million empty streams.
            piece = body[at : at + _PIECE_BYTES]
            if not piece:
                raise zlib.error("truncated")
            part = stream.decompress(piece, room + 1)
            room -= len(part)
            if room < 0:
                raise Refusal(TOO_LARGE, f"the body is larger than {limit} bytes once decompressed")
            parts.append(part)
            at += len(piece) - len(stream.unused_data)
        if at == len(body) or wbits != _GZIP:
            return parts[0] if len(parts) == 1 else b"".join(parts)

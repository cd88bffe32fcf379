"""One HTTP request and its whole answer, bounded in time and size."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Final

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
_CHUNK: Final = 1 << 16


class NoAnswerError(Exception):
    """There was no answer, or not all of it in time, or too much of it. The message says which, in a few words."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer.

    Attributes:
        status: The HTTP status.
        text: The body.
        location: Where a redirect that was not followed leads; "" for none.
    """

    status: int
    text: str
    location: str = ""


def exchange(opener: urllib.request.OpenerDirector, request: urllib.request.Request, seconds: float) -> Answer:
    """Send a request and return the answer, whatever its status.

    Args:
        opener: What sends it; knows of proxies and redirects.
        request: What to send.
        seconds: For all of it, however slowly the answer comes.

    Raises:
        NoAnswerError: See there. Of what is no HTTP at all, the message holds the first line.
    """
    deadline = time.monotonic() + seconds
    try:
        try:
            reply = opener.open(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            body = bytearray()
            while chunk := reply.read1(_CHUNK):
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise NoAnswerError(f"more than {MAX_BODY_BYTES >> 20} MB in one answer")
                if time.monotonic() > deadline:
                    raise TimeoutError
            return Answer(reply.status, body.decode(errors="replace"), str(reply.headers.get("Location", "")))
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise NoAnswerError(f"no answer within {seconds:g} s") from None
        raise NoAnswerError(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__) from None

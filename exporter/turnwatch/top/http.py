"""One bounded HTTP request to a source."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from turnwatch.core.printable import printable
from turnwatch.top.address import Address
from turnwatch.top.reading import SourceError

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
_CHUNK: Final = 1 << 16
_SAID: Final = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer.

    Attributes:
        status: The HTTP status.
        text: The body.
    """

    status: int
    text: str


def ask(
    address: Address,
    url: str,
    *,
    timeout_seconds: float,
    form: Mapping[str, str] | None = None,
    accept: str = "*/*",
) -> Answer:
    """GET ``url``, or POST ``form`` to it, and return the answer, whatever its status.

    Args:
        address: The source that the URL belongs to: its headers are sent, and its name stands in errors.
        url: What to ask for.
        timeout_seconds: For all of it.
        form: Fields to send.
        accept: The media types that are understood.

    Raises:
        SourceError: No answer in time, or too long a one.
    """
    request = urllib.request.Request(url, None if form is None else urlencode(form).encode())
    request.add_header("Accept", accept)
    for name, value in address.headers.items():
        request.add_unredirected_header(name, value)  # a redirect may lead to somebody else
    proxies = urllib.request.ProxyHandler({}) if address.is_loopback else urllib.request.ProxyHandler()
    deadline = time.monotonic() + timeout_seconds
    late = SourceError(f"{address.url}: no answer within {timeout_seconds:g} s")
    try:
        try:
            reply = urllib.request.build_opener(proxies).open(request, timeout=timeout_seconds)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            body = bytearray()
            while chunk := reply.read1(_CHUNK):
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise SourceError(f"{address.url}: more than {MAX_BODY_BYTES >> 20} MB in one answer")
                if time.monotonic() > deadline:
                    raise late
            return Answer(reply.status, body.decode(errors="replace"))
    except TimeoutError:
        raise late from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise late from None
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        # Of what is no HTTP at all, the message holds the first line.
        raise SourceError(f"{address.url}: {printable(said)[:_SAID]}") from None


def refusal(address: Address, answer: Answer) -> SourceError:
    """What to say of an answer that is no success."""
    hint = "; --header sends a token" if answer.status in (401, 403) else ""
    return SourceError(f"{address.url}: HTTP status {answer.status}{hint}")

"""One bounded HTTP request to a source."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from turnwatch.core.printable import printable
from turnwatch.http_answer import Answer, NoAnswerError, exchange
from turnwatch.top.address import Address
from turnwatch.top.reading import SourceError

_SAID: Final = 120


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
    try:
        return exchange(urllib.request.build_opener(proxies), request, timeout_seconds)
    except NoAnswerError as error:
        raise SourceError(f"{address.url}: {printable(str(error))[:_SAID]}") from None


def refusal(address: Address, answer: Answer) -> SourceError:
    """What to say of an answer that is no success."""
    hint = "; --header sends a token" if answer.status in (401, 403) else ""
    return SourceError(f"{address.url}: HTTP status {answer.status}{hint}")

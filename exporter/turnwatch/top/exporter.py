"""An exporter: a page of metrics that is read again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from turnwatch.top.address import Address
from turnwatch.top.counters import Counters
from turnwatch.top.folding import begun_of, levels_of, totals_of
from turnwatch.top.http import ask, refusal
from turnwatch.top.page import PageError, PageReader
from turnwatch.top.reading import Kind, Reading, SourceError

_ACCEPT: Final = "text/plain;version=0.0.4"


class Exporter:
    """The metrics page at an address.

    Args:
        address: The page.
        window_seconds: What rates look back over.
        timeout_seconds: For one request.
        since_exporters_began: Whether what counters had risen to by the first look counts as well.
        clock: Seconds, only ever going forward.
    """

    kind: Kind = "metrics"

    def __init__(
        self,
        address: Address,
        *,
        window_seconds: float,
        timeout_seconds: float,
        since_exporters_began: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._timeout = timeout_seconds
        self._clock = clock
        self._page = PageReader()
        self._counters = Counters(window_seconds, since_exporters_began=since_exporters_began)

    def read(self) -> Reading:
        """Scrape it. Raises SourceError."""
        answer = ask(self._address, self._address.whole, timeout_seconds=self._timeout, accept=_ACCEPT)
        at = self._clock()
        if answer.status != 200:
            raise refusal(self._address, answer)
        try:
            samples = self._page.samples(answer.text)
        except PageError as error:
            raise SourceError(f"{self._address.url}: {error}") from None
        counters = self._counters
        counters.take(at, samples)
        return Reading(
            levels=levels_of(samples),
            rates=counters.rates(),
            tallies=counters.tallies(),
            window_seconds=counters.span_seconds,
            begun=begun_of(samples),
            totals=totals_of(samples),
            restarts=counters.restarts,
        )

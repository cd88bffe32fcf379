"""Which kind of source an address is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

from turnwatch.top.address import Address
from turnwatch.top.exporter import Exporter
from turnwatch.top.http import ask
from turnwatch.top.prometheus import QUERY_PATH, Prometheus
from turnwatch.top.reading import Kind, Reading, Source

Forced = Literal["prometheus", "metrics", "auto"]


class UnknownSource:
    """An address whose kind is found out when it first answers, and then stays.

    An address that ends in /metrics is an exporter's page. Another one is a Prometheus where it answers a query, and
    else the page, or the host of one.

    Args:
        address: Where it is.
        make_exporter: Makes the source of a metrics page.
        make_prometheus: Makes the source of a Prometheus.
        timeout_seconds: For one request.
        forced: Its kind, where the user says so.
    """

    def __init__(
        self,
        address: Address,
        *,
        make_exporter: Callable[[Address], Exporter],
        make_prometheus: Callable[[Address], Prometheus],
        timeout_seconds: float,
        forced: Forced = "auto",
    ) -> None:
        self.address = address.url
        self._address = address
        self._make_exporter = make_exporter
        self._make_prometheus = make_prometheus
        self._timeout = timeout_seconds
        self._forced = forced
        self._found: Exporter | Prometheus | None = None

    @property
    def kind(self) -> Kind | None:
        """What it is; None as long as that is not known."""
        return None if self._found is None else self._found.kind

    def read(self) -> Reading:
        """Look at it. Raises SourceError."""
        if self._found is None:
            self._found = self._what_it_is()
        return self._found.read()

    def _what_it_is(self) -> Exporter | Prometheus:
        if self._forced == "prometheus":
            return self._make_prometheus(self._address)
        if self._forced == "auto" and not self._address.path.endswith("/metrics") and self._answers_queries():
            return self._make_prometheus(self._address)
        if self._address.path:
            return self._make_exporter(self._address)
        page = Address(self._address.below("/metrics"), self._address.query, self._address.headers)
        return self._make_exporter(page)

    def _answers_queries(self) -> bool:
        url = self._address.below(f"{QUERY_PATH}?query=1")
        answer = ask(self._address, url, timeout_seconds=self._timeout, accept="application/json")
        try:
            return bool(json.loads(answer.text)["status"] == "success")
        except (ValueError, KeyError, TypeError):
            return False


def source_of(
    address: Address,
    *,
    window_seconds: float,
    timeout_seconds: float,
    selector: str = "",
    forced: Forced = "auto",
    since_exporters_began: bool = False,
) -> Source:
    """A source for an address.

    Args:
        address: Where it is.
        window_seconds: What rates look back over.
        timeout_seconds: For one request.
        selector: Matchers that choose the series of a Prometheus.
        forced: Its kind, where the user says so.
        since_exporters_began: Whether what counters had risen to by the first look counts as well.
    """
    return UnknownSource(
        address,
        make_exporter=lambda page: Exporter(
            page,
            window_seconds=window_seconds,
            timeout_seconds=timeout_seconds,
            since_exporters_began=since_exporters_began,
        ),
        make_prometheus=lambda base: Prometheus(
            base,
            window_seconds=window_seconds,
            timeout_seconds=timeout_seconds,
            selector=selector,
            since_exporters_began=since_exporters_began,
        ),
        timeout_seconds=timeout_seconds,
        forced=forced,
    )

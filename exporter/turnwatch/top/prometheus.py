"""A Prometheus, or whatever has its HTTP API: one query for all that is shown."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from turnwatch.top.address import Address
from turnwatch.top.counters import Counters
from turnwatch.top.folding import begun_of, put, totals_of
from turnwatch.top.http import ask, refusal
from turnwatch.top.quantities import COUNTERS, LEVELS, VERDICTS_CREATED, Quantity
from turnwatch.top.reading import Group, Kind, Reading, Sample, SourceError, Table

QUERY_PATH: Final = "/api/v1/query"

_MARK: Final = "turnwatch_top"
"""Label that says which part of the query a series of the answer belongs to."""

_UP, _DOWN, _SPACING = "targets up", "targets down", "seconds between scrapes"
_SAMPLES_IN_WINDOW: Final = 4
"""rate() needs two samples in its window, and one scrape may fail."""


class Prometheus:
    """A Prometheus that scrapes exporters.

    What is a level or a rate is folded over there, with the functions of the pack's own rules and dashboards. Counters
    that are shown since the start come series by series, for only so can a restart be told from a gap.

    Args:
        address: Its base URL.
        window_seconds: What rates look back over. Where scrapes are further apart than a quarter of it, four of them.
        timeout_seconds: For one request.
        selector: Matchers that choose the series, as in PromQL: 'job="agents"'.
        since_exporters_began: Whether what counters had risen to by the first look counts as well.
        clock: Seconds, only ever going forward.
    """

    kind: Kind = "prometheus"

    def __init__(
        self,
        address: Address,
        *,
        window_seconds: float,
        timeout_seconds: float,
        selector: str = "",
        since_exporters_began: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._window = window_seconds
        self._timeout = timeout_seconds
        self._selector = selector
        self._clock = clock
        self._counters = Counters(window_seconds, since_exporters_began=since_exporters_began)
        self._spacing = 0.0
        self._has_read = False

    def read(self) -> Reading:
        """Query it. Raises SourceError."""
        window = math.ceil(max(self._window, _SAMPLES_IN_WINDOW * self._spacing))
        query = whole_query(self._selector, window, is_first=not self._has_read)
        at = self._clock()
        parts = self._parts(query)
        if not parts:
            raise SourceError(f"{self._address.url}: answers, but this Prometheus has no turnwatch metrics")
        self._spacing = _only_value(parts.get(_SPACING, []))
        self._has_read = True
        kept = [
            Sample(mark, labels, value)
            for mark in (*(quantity.metric for quantity in COUNTERS if quantity.is_tallied), VERDICTS_CREATED)
            for labels, value in parts.get(mark, [])
        ]
        self._counters.take(at, kept)
        up, down = (_only_value(parts.get(mark, [])) for mark in (_UP, _DOWN))
        return Reading(
            levels={quantity.metric: _column(parts, quantity, quantity.metric) for quantity in LEVELS},
            rates={
                quantity.metric: _column(parts, quantity, _rate_of(quantity))
                for quantity in COUNTERS
                if quantity.is_rated
            },
            tallies=self._counters.tallies(),
            window_seconds=float(window),
            begun=begun_of(kept),
            totals=totals_of(kept),
            restarts=0,  # a Prometheus sees pods come and go all the time
            # Series that were pushed have no target: then it is the Prometheus itself that is up.
            targets_up=int(up) if up or down else 1,
            targets_down=int(down),
        )

    def _parts(self, query: str) -> dict[str, list[tuple[dict[str, str], float]]]:
        parts: dict[str, list[tuple[dict[str, str], float]]] = {}
        for labels, value in self._vector(query):
            parts.setdefault(labels.pop(_MARK, ""), []).append((labels, value))
        return parts

    def _vector(self, query: str) -> Iterator[tuple[dict[str, str], float]]:
        answer = ask(
            self._address,
            self._address.below(QUERY_PATH),
            timeout_seconds=self._timeout,
            form={"query": query, "timeout": f"{math.ceil(self._timeout)}s"},
            accept="application/json",
        )
        try:
            body = json.loads(answer.text)
            if body["status"] != "success":
                is_ours = self._selector and body.get("errorType") == "bad_data"  # the rest of the query is well-formed
                hint = "; --selector wants matchers as in PromQL: 'job=\"agents\"'" if is_ours else ""
                raise SourceError(f"{self._address.url}: {_plain(body.get('error', 'the query failed'))}{hint}")
            if body["data"]["resultType"] != "vector":
                raise ValueError
            for row in body["data"]["result"]:
                value = float(row["value"][1])
                if math.isfinite(value):
                    yield dict(row["metric"]), value
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            if answer.status != 200:
                raise refusal(self._address, answer) from None
            raise SourceError(f"{self._address.url}: not an answer of Prometheus's HTTP API") from None


def whole_query(selector: str, window_seconds: int, *, is_first: bool) -> str:
    """The one PromQL expression for everything that is shown, so that it is all of one moment and one round trip.

    Args:
        selector: Matchers that choose the series; "" for all.
        window_seconds: What rates look back over.
        is_first: Also ask for what a target that is gone at the moment had last: when it comes back, that is not news.
    """
    parts = []
    for quantity in LEVELS:
        parts.append(
            (quantity.metric, f"{quantity.fold} by ({', '.join(quantity.by)}) ({_series(quantity, selector)})")
        )
    for quantity in COUNTERS:
        series = _series(quantity, selector)
        if quantity.is_rated:
            rate = f"rate({series}[{window_seconds}s])"
            parts.append((_rate_of(quantity), f"sum by ({', '.join(quantity.by)}) ({rate})"))
        if quantity.is_tallied:
            parts.append((quantity.metric, f"last_over_time({series}[1h])" if is_first else series))
    parts.append((VERDICTS_CREATED, _selected(VERDICTS_CREATED, [selector])))
    info = _selected("turnwatch_build_info", [selector])
    now = f"timestamp({info})"
    seen = f"and on (job, instance) last_over_time({info}[1h])"
    parts += [
        (_UP, f"count((up == 1) {seen})"),
        (_DOWN, f"count((up == 0) {seen})"),
        # Not 5 minutes by the samples in them: a window wider than a series is old makes its rate too small.
        (_SPACING, f"quantile(0.5, ({now} - min_over_time({now}[5m:5s])) / count_over_time({info}[5m]))"),
    ]
    return "\nor\n".join(f'label_replace({expression}, "{_MARK}", "{mark}", "", "")' for mark, expression in parts)


def _series(quantity: Quantity, selector: str) -> str:
    return _selected(
        quantity.metric, [selector, *(f'{label}=~"{"|".join(values)}"' for label, values in quantity.only)]
    )


def _selected(metric: str, matchers: list[str]) -> str:
    present = [matcher for matcher in matchers if matcher]
    return f"{metric}{{{', '.join(present)}}}" if present else metric


def _rate_of(quantity: Quantity) -> str:
    return f"rate of {quantity.metric}"


def _column(parts: dict[str, list[tuple[dict[str, str], float]]], quantity: Quantity, mark: str) -> dict[Group, float]:
    table: Table = {}
    for labels, value in parts.get(mark, []):
        put(table, quantity.metric, tuple(labels.get(label, "") for label in quantity.by), value)
    return table.get(quantity.metric, {})


def _only_value(rows: list[tuple[dict[str, str], float]]) -> float:
    return rows[0][1] if rows else 0.0


def _plain(said: Any) -> str:
    return " ".join(str(said).split())[:200]

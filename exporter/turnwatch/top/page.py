"""What a page of metrics says."""

from __future__ import annotations

import math
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from turnwatch.metrics.catalogue import BY_NAME
from turnwatch.top.quantities import PREFIXES, READ
from turnwatch.top.reading import Sample

MAX_SERIES: Final = 200_000
"""Series of one page that are read."""


class PageError(ValueError):
    """A page that cannot be used. The message says why, for people."""


class PageReader:
    """Reads one exporter's page again and again.

    The client library's parser takes a tenth of a millisecond a line, so it is asked only for series that the page
    before did not have.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, dict[str, str]]] = {}

    def samples(self, page: str) -> list[Sample]:
        """The finite samples of the metrics that are shown.

        Raises:
            PageError: It is no page of metrics, has none of turnwatch's, or too many.
        """
        known: dict[str, tuple[str, dict[str, str]]] = {}
        samples: list[Sample] = []
        has_own = False
        # "\n" and not splitlines(): a label's value may hold what Unicode calls the end of a line.
        for line in page.split("\n"):
            if not line.startswith(PREFIXES):
                continue
            name = line.partition("{")[0].partition(" ")[0]
            has_own |= name in BY_NAME
            if name not in READ:
                continue
            series, brace, number = line.rpartition("} ")
            try:
                if brace and (found := self._known.get(series)) is not None:
                    value = float(number.split()[0])
                else:
                    found, value = _parsed(line)
            except (ValueError, IndexError):
                raise PageError("not Prometheus's text format") from None
            if len(samples) >= MAX_SERIES:
                raise PageError(f"more than {MAX_SERIES} series")
            known[series] = found
            if math.isfinite(value):
                samples.append(Sample(*found, value))
        if not has_own:
            raise PageError("answers, but has no turnwatch metrics")
        self._known = known
        return samples


def _parsed(line: str) -> tuple[tuple[str, dict[str, str]], float]:
    # Without its TYPE line the parser takes a series as it is written.
    for family in text_string_to_metric_families(line):
        for sample in family.samples:
            return (sample.name, sample.labels), float(sample.value)
    raise ValueError("no sample")

"""Readings of the metrics at many times, as one OpenMetrics text with timestamps."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Mapping
from typing import IO, Final

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.utils import floatToGoString

# What is held in memory before it goes to the temporary file.
_BUFFERED_BYTES: Final = 32 * 1024 * 1024
_COPIED_BYTES: Final = 1024 * 1024
# Whole numbers up to here are written without exponent.
_EXACT: Final = 1e15


class _Series:
    """The lines of one labelled metric: one series, or all those of a histogram."""

    __slots__ = ("lines", "spooled")

    def __init__(self) -> None:
        self.lines = bytearray()
        self.spooled: list[tuple[int, int]] = []  # position and length in the temporary file


class _FamilyText:
    __slots__ = ("header", "series")

    def __init__(self, family: Family) -> None:
        name, help_text = family.name, family.documentation.replace("\\", r"\\").replace("\n", r"\n")
        self.header = f"# HELP {name} {help_text}\n# TYPE {name} {family.type}\n".encode()
        self.series: dict[tuple[str, ...], _Series] = {}


class History:
    """Collects readings, and writes them as OpenMetrics wants them: by family, then by series, then by time.

    Memory is bounded: what is past it waits in a temporary file.

    Args:
        labels: Put on every series, as a scrape puts ``job`` and ``instance``.

    Attributes:
        samples: Samples so far.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.samples = 0
        self._labels = labels
        self._families: dict[str, _FamilyText] = {}
        # By the sample's name and label values, for its label names are always the same.
        self._known: dict[tuple[str, ...], tuple[_Series, bytes]] = {}
        self._latest: list[tuple[_Series, bytes]] = []
        self._buffered = 0
        self._spool: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 written until it is closed

    @property
    def series(self) -> int:
        """Different series so far."""
        return len(self._known)

    def close(self) -> None:
        """Give the temporary file back."""
        self._spool.close()

    def add(self, at: float, families: Iterable[Family]) -> None:
        """Add one reading. Readings come in the order of their times, and all at different ones."""
        latest = self._latest
        latest.clear()
        for family in families:
            for sample in family.samples:
                key = (sample.name, *sample.labels.values())
                known = self._known.get(key)
                if known is None:
                    known = self._known[key] = self._new(family, sample.name, sample.labels)
                latest.append((known[0], known[1] + _number(sample.value)))
        self.add_again(at)

    def add_again(self, at: float) -> None:
        """Add a reading that says the same as the one before."""
        end = b" " + _number(round(at, 3)) + b"\n"
        for series, text in self._latest:
            series.lines += text
            series.lines += end
            self._buffered += len(text) + len(end)
        self.samples += len(self._latest)
        if self._buffered > _BUFFERED_BYTES:
            self._spool_all()

    def write(self, out: IO[bytes]) -> None:
        """Write everything, once."""
        self._spool_all()
        for family in self._families.values():
            out.write(family.header)
            for series in family.series.values():
                for position, length in series.spooled:
                    self._spool.seek(position)
                    while length:
                        block = self._spool.read(min(length, _COPIED_BYTES))
                        out.write(block)
                        length -= len(block)
        out.write(b"# EOF\n")

    def _new(self, family: Family, name: str, labels: Mapping[str, str]) -> tuple[_Series, bytes]:
        text = self._families.get(family.name)
        if text is None:
            text = self._families[family.name] = _FamilyText(family)
        # A histogram's buckets belong together, so what sets them apart is no part of the series' identity.
        identity = tuple(value for label, value in labels.items() if label != "le")
        series = text.series.setdefault(identity, _Series())
        pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in {**self._labels, **labels}.items())
        return series, (f"{name}{{{pairs}}} " if pairs else f"{name} ").encode()

    def _spool_all(self) -> None:
        position = self._spool.seek(0, 2)
        for family in self._families.values():
            for series in family.series.values():
                if series.lines:
                    self._spool.write(series.lines)
                    series.spooled.append((position, len(series.lines)))
                    position += len(series.lines)
                    series.lines = bytearray()
        self._buffered = 0


def _number(value: float) -> bytes:
    if abs(value) < _EXACT and value == int(value):
        return b"%d" % value
    text: str = repr(value) if math.isfinite(value) else floatToGoString(value)
    return text.encode()


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

"""The turns in files of spans, in memory that does not grow with the files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.compressed import BROKEN, open_file
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.files import (
    Format,
    OnProblem,
    Open,
    Problem,
    Read,
    format_of,
    ignore,
    read_file,
    span_files,
)
from turnwatch.sources.spans.otlp_json import Passing, bare_span
from turnwatch.sources.spans.span import SpanData

# Files are in no particular order; within this many spans, and this many bytes of them, they are put in the order in
# which they ended.
_SORTED_SPANS: Final = 20_000
_SORTED_BYTES: Final = 25_165_824
_SMALLEST_SPAN_BYTES: Final = 1_000
_PASSING_SPAN_BYTES: Final = 400
_BATCH_SPANS: Final = 1_000
# In a file nothing is late by a clock, only by its place: the clock runs with the spans of agents that were read. It
# runs faster while very many turns are open, so that spans whose agent's span never comes take a bounded memory.
_SPANS_A_SECOND: Final = 1_000
_OPEN_AT_LEISURE: Final = 500
_GRACE_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 50.0
_REMEMBERED_TRACES: Final = 20_000
_REMEMBERED_PARENTS: Final = 40_000


@dataclass(frozen=True, slots=True)
class FileTurn:
    """A turn found in a file.

    Attributes:
        path: The file in which its first span stood.
        turn: The turn, ended.
        line: The line where that span stood (1-based); None where the format has no lines.
    """

    path: Path
    turn: TurnState
    line: int | None = None


def iter_turns(
    paths: Iterable[Path],
    watch: Watch | None = None,
    on_problem: OnProblem = ignore,
    *,
    formats: Mapping[Path, Format | None] | None = None,
    open_: Open = open_file,
) -> Iterator[FileTurn]:
    """The turns in files of spans, each as soon as it is over.

    A turn may be spread over several files, and the same spans may stand in several. Memory is bounded by
    the open turns and by the spans that are put in order.

    Args:
        paths: Files and folders.
        watch: Judges the turns; a new one that counts nowhere when left out.
        on_problem: Told of everything that cannot be read.
        formats: What is known of the files already.
        open_: Opens them.

    Raises:
        OSError: A file cannot be read.
    """
    reading = _Reading(watch or Watch(), on_problem, open_)
    known = dict(formats or {})
    files = [(path, known.get(path) or format_of(path, open_)) for path in span_files(paths)]
    # What log records tell is kept until the spans come.
    files.sort(key=lambda file: file[1] != "otlp-logs")
    for path, known_as in files:
        yield from reading.take(path, known_as)
    yield from reading.end()


class _Reading:
    def __init__(self, watch: Watch, on_problem: OnProblem, open_: Open) -> None:
        self._on_problem = on_problem
        self._open = open_
        self._ended: list[TurnState] = []
        self._assembler = Assembler(
            watch,
            grace_seconds=_GRACE_SECONDS,
            settle_seconds=_IDLE_SECONDS,
            idle_seconds=_IDLE_SECONDS,
            on_end=self._ended.append,
        )
        self._clock = 0.0
        self._path = Path()
        self._waiting = _Waiting()
        self._began: OrderedDict[int, tuple[Path, int]] = OrderedDict()  # the first place of every trace

    def take(self, path: Path, format: Format | None) -> Iterator[FileTurn]:
        """Read a file; gives the turns that are over."""
        self._path = path
        try:
            for read in read_file(path, format, self._on_problem, self._open):
                if read.logs:
                    self._assembler.feed_logs(read.logs, self._clock)
                if read.spans:
                    self._remember(read, path)
                self._waiting.add(read)
                if self._waiting.is_full:
                    yield from self._feed(self._waiting.take_half())
        except BROKEN as error:
            self._on_problem(Problem(path, 0, str(error) or type(error).__name__))

    def end(self) -> Iterator[FileTurn]:
        """Nothing more will come; gives the turns that are left."""
        yield from self._feed(self._waiting.take_all())
        self._assembler.flush()
        yield from self._over()

    def _feed(self, spans: list[SpanData]) -> Iterator[FileTurn]:
        # In batches, so that a turn begins when its agent's span is known, if that is near.
        for start in range(0, len(spans), _BATCH_SPANS):
            batch = spans[start : start + _BATCH_SPANS]
            crowd = max(self._assembler.open_turns, len(self._assembler.awaited) // 2)
            self._clock += len(batch) / _SPANS_A_SECOND * max(1.0, crowd / _OPEN_AT_LEISURE)
            self._assembler.feed(batch, self._clock)
            yield from self._over()

    def _remember(self, read: Read, path: Path) -> None:
        began, place = self._began, (path, read.line)
        for span in read.spans:
            if span.trace_id not in began:
                began[span.trace_id] = place
        while len(began) > _REMEMBERED_TRACES:
            began.popitem(last=False)

    def _over(self) -> Iterator[FileTurn]:
        ended, self._ended[:] = self._ended[:], []
        for turn in ended:
            path, line = self._began.get(int(turn.turn_id[:32], 16), (self._path, 0))
            yield FileTurn(path, turn, line or None)


_Entry = tuple[int, int, int, int, SpanData | Passing]


class _Waiting:
    """Spans on their way to being put in order: by their end, children before parents.

    Of those that play no part it lets through what others hang under.
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._number = 0
        self._bytes = 0
        self._parents: dict[int, None] = {}

    def add(self, read: Read) -> None:
        """Add the spans of a line, or of a body."""
        number, entries, parents = self._number, self._entries, self._parents
        size = read.size // (len(read.spans) or 1) + _SMALLEST_SPAN_BYTES
        for span in read.spans:
            number += 1
            entries.append((span.end_ns, -span.start_ns, number, size, span))
            parents[span.parent_id] = None
        for passing in read.passing:
            number += 1
            entries.append((passing[0], -passing[1], number, _PASSING_SPAN_BYTES, passing))
        self._number = number
        self._bytes += size * len(read.spans) + _PASSING_SPAN_BYTES * len(read.passing)
        while len(parents) > _REMEMBERED_PARENTS:
            del parents[next(iter(parents))]

    @property
    def is_full(self) -> bool:
        """Whether as many wait as are put in order together."""
        return len(self._entries) >= 2 * _SORTED_SPANS or self._bytes >= _SORTED_BYTES

    def take_half(self) -> list[SpanData]:
        """Of the half of the spans that ended first those that count."""
        return self._take((len(self._entries) + 1) // 2)

    def take_all(self) -> list[SpanData]:
        """All spans that count."""
        return self._take(len(self._entries))

    def _take(self, number: int) -> list[SpanData]:
        self._entries.sort()
        taken = self._entries[:number]
        del self._entries[:number]
        self._bytes = sum(map(itemgetter(3), self._entries))
        spans: list[SpanData] = []
        parents = self._parents
        for *_, span in taken:
            if type(span) is SpanData:
                spans.append(span)
            else:
                bare = _bare(span) if span[2] in parents else None
                if bare is not None:
                    parents[bare.parent_id] = None
                    spans.append(bare)
        return spans


def _bare(passing: Passing) -> SpanData | None:
    try:
        return bare_span(passing)
    except ValueError:  # its ids are none, so nothing hangs under it
        return None

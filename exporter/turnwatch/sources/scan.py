"""Files in, judged turns out: which reader a file needs, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.settings import Settings
from turnwatch.sources.call_lines import CallLines
from turnwatch.sources.compressed import BROKEN
from turnwatch.sources.detection import Format as Format
from turnwatch.sources.detection import Found, as_transcript, find_out
from turnwatch.sources.inputs import Inputs, find_inputs
from turnwatch.sources.inputs import Unread as Unread
from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.replay import replay
from turnwatch.sources.spans.file_turns import iter_turns
from turnwatch.sources.spans.files import Format as SpansFormat
from turnwatch.sources.spans.files import Problem
from turnwatch.sources.trajectories import RecordedTurn, read_trajectories

_BODY_SUFFIXES: Final = frozenset({".pb", ".binpb", ".otlp"})


@dataclass(frozen=True, slots=True)
class ScannedTurn:
    """One turn of a file.

    Attributes:
        source: The file, as it was named.
        state: The turn's counts and verdicts.
        line: Where it starts in the file (1-based); None where a format has no lines.
        loop_lines: For each verdict the line of the loop's first call (1-based); None where that is not known.
        outcome: What the file says came of the run ("success", "failure"); None where it does not say.
    """

    source: str
    state: TurnState
    line: int | None = None
    loop_lines: tuple[int | None, ...] = ()
    outcome: str | None = None


class Reading(Protocol):
    """Hears how far the reading is."""

    def found(self, size: int | None) -> None:
        """How many bytes all files have; None when it is not known of all of them."""

    def read(self, file: Path, done: int) -> None:
        """So many bytes of a file have been read."""


def scan(
    paths: list[Path],
    settings: Settings | None = None,
    progress: Callable[[Path], None] | None = None,
    *,
    format: Format = Format.AUTO,
    new_watch: Callable[[], Watch] | None = None,
    reading: Reading | None = None,
) -> Iterator[ScannedTurn | Unread]:
    """Read files and folders.

    Files of spans that lie in one folder are read together, for a turn may be spread over several. In a
    folder, files of no known format are passed over; one that is named itself, or by its name is a request in protobuf,
    is reported. Each file is read once, however many paths lead to it.

    Args:
        paths: Files in any known format, also compressed, folders of them, patterns that match them, and ``-`` for
            standard input.
        settings: Thresholds and overrides to judge by.
        progress: Called with every file before it is read.
        format: What all files hold, when it is not to be found out from their content.
        new_watch: Makes what the turns of one file share, for another file may use the same ids for other
            things. For those who want to listen or to count too.
        reading: Hears how far the reading is.
    """
    if new_watch is None:
        judged_by = settings or Settings()

        def new_watch() -> Watch:
            return Watch(judged_by, clock=lambda: 0.0)

    inputs = find_inputs(paths)
    if reading is not None:
        reading.found(inputs.size)
    yield from inputs.unread
    scanning = _Scanning(inputs, new_watch, progress, reading, format)
    for group in inputs.groups:
        yield from scanning.files(group.files, named=group.named)


@dataclass(frozen=True, slots=True)
class _Scanning:
    inputs: Inputs
    new_watch: Callable[[], Watch]
    progress: Callable[[Path], None] | None
    reading: Reading | None
    format: Format

    def files(self, files: list[Path], *, named: bool) -> Iterator[ScannedTurn | Unread]:
        """What is in the files of one folder, or in those that were named."""
        spans: dict[Path, dict[Path, SpansFormat | None]] = {}
        for file in files:
            if self.progress is not None:
                self.progress(file)
            try:
                found = self._find_out(file)
                if found.format is Format.SPANS:
                    spans.setdefault(file.parent, {})[file] = found.spans
                elif found.format is Format.TRAJECTORIES:
                    yield from self._recorded(file, read_trajectories)
                elif found.transcript is not None:
                    yield from self._recorded(file, found.transcript.read)
                else:
                    if self.reading is not None and file.is_file():
                        self.reading.read(file, file.stat().st_size)
                    if _is_named_as_body(file):
                        yield Unread(str(file), "no OTLP request, as its name says it is, or not all of one")
                    elif named or self.format is not Format.AUTO:
                        yield Unread(str(file), found.why_not)
            except (OSError, *BROKEN) as error:
                yield Unread(str(file), _why(error))
        for together in spans.values():
            yield from self._spans(together)

    def _find_out(self, file: Path) -> Found:
        def open_() -> IO[bytes]:
            return self.inputs.open(file, for_good=False)

        if self.format is Format.AUTO:
            return find_out(open_)
        return as_transcript(open_) if self.format is Format.TRANSCRIPTS else Found(self.format)

    def _open(self, file: Path) -> IO[bytes]:
        return self.inputs.open(file, on_read=None if self.reading is None else self.reading.read)

    def _spans(self, files: dict[Path, SpansFormat | None]) -> Iterator[ScannedTurn | Unread]:
        problems: list[Problem] = []
        watch = self.new_watch()
        lines = CallLines()
        watch.listeners.append(lines)
        try:
            for found in iter_turns(files, watch, problems.append, formats=files, open_=self._open):
                while problems:
                    yield _unread(problems.pop(0))
                yield ScannedTurn(str(found.path), found.turn, found.line, lines.of_loops(found.turn, found.line))
        except (OSError, *BROKEN) as error:
            yield Unread(str(getattr(error, "filename", None) or next(iter(files))), _why(error))
        for problem in problems:
            yield _unread(problem)

    def _recorded(
        self, file: Path, read: Callable[[IO[bytes]], Iterator[RecordedTurn | BrokenLine]]
    ) -> Iterator[ScannedTurn | Unread]:
        watch = self.new_watch()
        lines = CallLines()
        watch.listeners.append(lines)
        latest: tuple[RecordedTurn, TurnState] | None = None
        with self._open(file) as stream:
            for item in read(stream):
                if isinstance(item, BrokenLine):
                    yield Unread(str(file), item.reason, item.line)
                    continue
                # The turns of sub-agents follow their parent's.
                if item.parent is not None and latest is not None and item.parent is latest[0]:
                    state = replay(item, watch, latest[1])
                else:
                    state = replay(item, watch)
                    latest = (item, state)
                line = item.line or None
                yield ScannedTurn(str(file), state, line, lines.of_loops(state, line), item.outcome)


def _is_named_as_body(file: Path) -> bool:
    """Whether a file's name says that it is a request in protobuf, compressed or not."""
    return not _BODY_SUFFIXES.isdisjoint(suffix.lower() for suffix in file.suffixes)


def _unread(problem: Problem) -> Unread:
    return Unread(str(problem.path), problem.reason, problem.line or None)


def _why(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

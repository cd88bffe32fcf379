"""Files in, judged turns out: which reader a file needs, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.settings import Settings
from turnwatch.sources.compressed import BROKEN, open_file
from turnwatch.sources.replay import replay
from turnwatch.sources.spans.files import Problem, format_of, iter_turns
from turnwatch.sources.trajectories import (
    BrokenLine,
    RecordedTurn,
    looks_like_trajectory,
    parse_line,
    read_trajectories,
)
from turnwatch.sources.transcripts.formats import transcript_format


class Format(StrEnum):
    """What a file holds: found out from its content, or said."""

    AUTO = "auto"
    SPANS = "spans"
    TRAJECTORIES = "trajectories"
    TRANSCRIPTS = "transcripts"


@dataclass(frozen=True, slots=True)
class ScannedTurn:
    """One turn of a file.

    Attributes:
        source: The file, as it was named.
        state: The turn's counts and verdicts.
        line: Where it starts in the file (1-based); None where a format has no lines.
        outcome: What the file says came of the run ("success", "failure"); None where it does not say.
    """

    source: str
    state: TurnState
    line: int | None = None
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read.

    Attributes:
        source: The file.
        reason: What is wrong, without the content.
        line: Where (1-based); None when it is the whole file.
    """

    source: str
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{where}: {self.reason}"


def scan(
    paths: list[Path],
    settings: Settings | None = None,
    progress: Callable[[Path], None] | None = None,
    *,
    format: Format = Format.AUTO,
    new_watch: Callable[[], Watch] | None = None,
) -> Iterator[ScannedTurn | Unread]:
    """Read files and folders.

    Files of spans that lie in one folder are read together, for a turn may be spread over several. In a
    folder, files of no known format are passed over; a file that is named itself is reported.

    Args:
        paths: Files in any known format, also compressed, and folders of them.
        settings: Thresholds and overrides to judge by.
        progress: Called with every file before it is read.
        format: What all files hold, when it is not to be found out from their content.
        new_watch: Makes what the turns of one file share, for another file may use the same ids for other
            things. For those who want to listen or to count too.
    """
    if new_watch is None:
        judged_by = settings or Settings()

        def new_watch() -> Watch:
            return Watch(judged_by, clock=lambda: 0.0)

    yield from _scan_together([path for path in paths if not path.is_dir()], new_watch, progress, format, named=True)
    for path in paths:
        if path.is_dir():
            for folder in (path, *sorted(inner for inner in path.rglob("*") if inner.is_dir())):
                files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
                yield from _scan_together(files, new_watch, progress, format, named=False)


def _scan_together(
    files: list[Path],
    new_watch: Callable[[], Watch],
    progress: Callable[[Path], None] | None,
    format: Format,
    *,
    named: bool,
) -> Iterator[ScannedTurn | Unread]:
    spans: dict[Path, list[Path]] = {}
    for file in files:
        if progress is not None:
            progress(file)
        try:
            found = _format_of(file) if format is Format.AUTO else format
            if found is Format.TRAJECTORIES:
                yield from _scan_recorded(file, read_trajectories, new_watch())
            elif found is Format.TRANSCRIPTS:
                yield from _scan_transcript(file, new_watch())
            elif found is Format.SPANS:
                spans.setdefault(file.parent, []).append(file)
            elif named:
                yield Unread(str(file), "empty" if not file.stat().st_size else "not a format that turnwatch reads")
        except (OSError, *BROKEN) as error:
            yield Unread(str(file), _why(error))
    for together in spans.values():
        yield from _scan_spans(together, new_watch())


def _scan_spans(files: list[Path], watch: Watch) -> Iterator[ScannedTurn | Unread]:
    problems: list[Problem] = []
    try:
        for found in iter_turns(files, watch, problems.append):
            while problems:
                yield _unread(problems.pop(0))
            yield ScannedTurn(str(found.path), found.turn)
    except (OSError, *BROKEN) as error:
        yield Unread(str(getattr(error, "filename", None) or files[0]), _why(error))
    for problem in problems:
        yield _unread(problem)


def _unread(problem: Problem) -> Unread:
    return Unread(str(problem.path), problem.reason, problem.line or None)


def _format_of(path: Path) -> Format | None:
    if _is_trajectory_file(path):
        return Format.TRAJECTORIES
    if format_of(path) is not None:
        return Format.SPANS
    with open_file(path) as stream:
        return Format.TRANSCRIPTS if transcript_format(stream) is not None else None


def _is_trajectory_file(path: Path) -> bool:
    """Whether the first whole line of a file, plain or compressed, is a trajectory or a case."""
    with open_file(path) as stream:
        for line in stream:
            if line.strip():
                try:
                    return looks_like_trajectory(parse_line(line))
                except ValueError:
                    continue
    return False


def _scan_transcript(path: Path, watch: Watch) -> Iterator[ScannedTurn | Unread]:
    with open_file(path) as stream:
        transcript = transcript_format(stream)
    if transcript is None:
        yield Unread(str(path), "not a transcript that turnwatch reads")
    else:
        yield from _scan_recorded(path, transcript.read, watch)


def _scan_recorded(
    path: Path, read: Callable[[IO[bytes]], Iterator[RecordedTurn | BrokenLine]], watch: Watch
) -> Iterator[ScannedTurn | Unread]:
    latest: tuple[RecordedTurn, TurnState] | None = None
    with open_file(path) as stream:
        for item in read(stream):
            if isinstance(item, BrokenLine):
                yield Unread(str(path), item.reason, item.line)
                continue
            # The turns of sub-agents follow their parent's.
            if item.parent is not None and latest is not None and item.parent is latest[0]:
                state = replay(item, watch, latest[1])
            else:
                state = replay(item, watch)
                latest = (item, state)
            yield ScannedTurn(str(path), state, item.line or None, item.outcome)


def _why(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

"""Files in, judged turns out: which reader a file needs, and what could not be read."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

import orjson

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.settings import Settings
from turnwatch.sources.replay import replay
from turnwatch.sources.trajectories import BrokenLine, looks_like_trajectory, read_trajectories

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\x00"
_HEAD_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class ScannedTurn:
    """One turn of a file.

    Attributes:
        source: The file, as it was named.
        state: The turn's counts and verdicts.
        line: Where it starts in the file (1-based); None where a format has no lines.
    """

    source: str
    state: TurnState
    line: int | None = None


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
    paths: list[Path], settings: Settings | None = None, progress: Callable[[Path], None] | None = None
) -> Iterator[ScannedTurn | Unread]:
    """Read files and folders.

    Args:
        paths: Files in any known format, plain or compressed, and folders of them.
        settings: Thresholds and overrides to judge by.
        progress: Called with every file before it is read.
    """
    for path in paths:
        for file in _files(path):
            if progress is not None:
                progress(file)
            yield from _scan_file(file, settings or Settings())


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith("."))
    else:
        yield path


def _scan_file(path: Path, settings: Settings) -> Iterator[ScannedTurn | Unread]:
    source = str(path)
    try:
        with _open(path) as stream:
            head = stream.read(_HEAD_BYTES)
            if not head.strip():
                yield Unread(source, "empty")
                return
            stream.seek(0)
            if not _first_line_is_trajectory(stream):
                yield Unread(source, "not a format that turnwatch reads")
                return
            stream.seek(0)
            # A file's conversations are its own: another file may use the same ids for other things.
            watch = Watch(settings, clock=lambda: 0.0)
            for item in read_trajectories(stream):
                if isinstance(item, BrokenLine):
                    yield Unread(source, item.reason, item.line)
                else:
                    yield ScannedTurn(source, replay(item, watch), item.line)
    except (OSError, EOFError, lzma.LZMAError) as error:
        yield Unread(source, _why(error))


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as stream:
        magic = stream.read(6)
    if magic.startswith(_GZIP):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if magic.startswith(_XZ):
        return lzma.open(path, "rb")
    return path.open("rb")


def _first_line_is_trajectory(stream: IO[bytes]) -> bool:
    for line in stream:
        if line.strip():
            try:
                return looks_like_trajectory(orjson.loads(line))
            except ValueError:
                continue
    return False


def _why(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

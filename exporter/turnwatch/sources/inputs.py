"""What is to be read: files, folders, patterns and standard input, each file once."""

from __future__ import annotations

import glob
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from turnwatch.sources.compressed import open_file, opened

STDIN: Final = Path("-")
"""Standard input, as a path."""


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


@dataclass(frozen=True, slots=True)
class Group:
    """Files that belong together.

    Attributes:
        files: In the order in which they are to be read.
        named: Somebody named them, so one that cannot be read is reported.
    """

    files: list[Path]
    named: bool


@dataclass(slots=True)
class Inputs:
    """Every file that is meant, once.

    Attributes:
        groups: The files that were named, and those of each folder.
        unread: What cannot be looked into.
        size: Bytes of all files; None when it is not known of all.
    """

    groups: list[Group] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    size: int | None = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)
    _once: dict[Path, _Kept] = field(default_factory=dict)

    def open(
        self, path: Path, *, for_good: bool = True, on_read: Callable[[Path, int], None] | None = None
    ) -> IO[bytes]:
        """Open one of the files from its start.

        Args:
            path: The file.
            for_good: It is not opened again: of a pipe nothing needs to be kept.
            on_read: Told now and then how many bytes of which file have been read.

        Raises:
            OSError, MissingExtraError: As by ``open_file``.
        """
        tell = None if on_read is None else lambda done: on_read(path, done)
        kept = self._once.get(path)
        return open_file(path, tell) if kept is None else opened(kept.reader(for_good, tell))


def find_inputs(paths: list[Path]) -> Inputs:
    """The files that these paths mean.

    A path with a wildcard that names no file is a pattern; ``-`` is standard input. Files and folders that are named
    twice, or linked to from several places, are read once.
    """
    inputs = Inputs()
    named: list[Path] = []
    folders: list[Path] = []
    for path in paths:
        for meant in _meant(path, inputs):
            if _is_folder(meant):
                folders.append(meant)
            elif _is_new(meant, inputs):
                named.append(meant)
    inputs.groups.append(Group(named, named=True))
    for folder in folders:
        for files in _files_in(folder, inputs):
            inputs.groups.append(Group(files, named=False))
    return inputs


def _meant(path: Path, inputs: Inputs) -> list[Path]:
    if path == STDIN or not glob.has_magic(str(path)) or os.path.lexists(path):
        return [path]
    names = glob.glob(str(path.expanduser()), recursive=True)  # noqa: PTH207 Path.glob takes no absolute pattern
    found = [Path(name) for name in sorted(names)]
    if not found:
        inputs.unread.append(Unread(str(path), "no such file, and as a pattern it matches none"))
    return found


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # whoever reads it says why not
        return False


def _is_new(path: Path, inputs: Inputs) -> bool:
    """Whether a file was not found before. Its size is added up."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == STDIN else path.stat()
    except (OSError, ValueError, AttributeError):
        return True  # whoever reads it says why not
    key = (status.st_dev, status.st_ino)
    if key in inputs._seen:
        return False
    inputs._seen.add(key)
    if stat.S_ISREG(status.st_mode) and path != STDIN:
        inputs.size = None if inputs.size is None else inputs.size + status.st_size
    else:
        inputs.size = None
        inputs._once[path] = _Kept(path)
    return True


def _files_in(folder: Path, inputs: Inputs) -> Iterator[list[Path]]:
    """The files of a folder and of those below it, folder by folder."""
    left = [folder]
    while left:
        here = left.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in inputs._seen:
                continue  # a link to a folder above it, for one
            inputs._seen.add((status.st_dev, status.st_ino))
            inner = sorted(here.iterdir())
        except OSError as error:
            inputs.unread.append(Unread(str(here), error.strerror or type(error).__name__))
            continue
        files: list[Path] = []
        below: list[Path] = []
        for each in inner:
            try:
                mode = each.stat().st_mode
            except FileNotFoundError:  # a link to nowhere
                continue
            except OSError as error:
                inputs.unread.append(Unread(str(each), error.strerror or type(error).__name__))
                continue
            if stat.S_ISDIR(mode):
                below.append(each)
            elif stat.S_ISREG(mode) and not each.name.startswith(".") and _is_new(each, inputs):
                files.append(each)
        left.extend(reversed(below))
        if files:
            yield files


class _Kept:
    """A pipe, of which what was read is kept until it is opened for good."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.RawIOBase | None = None
        self.head = bytearray()
        self.is_kept = True

    def reader(self, for_good: bool, on_read: Callable[[int], None] | None) -> io.RawIOBase:
        self.is_kept = not for_good
        return _KeptReader(self, on_read)

    def read(self, size: int) -> bytes:
        if self._file is None:
            self._file = io.FileIO(sys.stdin.fileno(), closefd=False) if self._path == STDIN else io.FileIO(self._path)
        more = b"" if self._file.closed else self._file.read(size) or b""
        if not more:
            self._file.close()
        elif self.is_kept:
            self.head += more
        return more


class _KeptReader(io.RawIOBase):
    def __init__(self, kept: _Kept, on_read: Callable[[int], None] | None) -> None:
        self._kept = kept
        self._on_read = on_read
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        head = self._kept.head
        more = bytes(head[self._done : self._done + len(buffer)])
        if not more:
            if not self._kept.is_kept:
                head.clear()
            more = self._kept.read(len(buffer))
        buffer[: len(more)] = more
        self._done += len(more)
        if self._on_read is not None:
            self._on_read(self._done)
        return len(more)

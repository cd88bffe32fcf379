"""How far the reading is: a bar on a terminal, nothing anywhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from turnwatch.core.printable import printable

_SHOW_CURSOR: Final = "\x1b[?25h"


@final
class ReadingBar:
    """Shows how much of all files has been read. On standard error, so that standard output can be piped.

    It is a context manager, and a ``turnwatch.sources.scan.Reading``.

    Args:
        prints_meanwhile: Whether something is printed on standard output while files are read.
    """

    def __init__(self, *, prints_meanwhile: bool = False) -> None:
        is_shown = sys.stderr.isatty() and not (prints_meanwhile and sys.stdout.isatty())
        self._bar = Progress(
            TextColumn("{task.fields[file]}"),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            expand=True,
            disable=not is_shown,
        )
        self._task = self._bar.add_task("", file="", total=None)
        self._is_shown = is_shown
        self._file = Path()
        self._before = self._in_file = 0

    def __enter__(self) -> Self:
        try:
            self._bar.start()
        except BaseException:  # a signal, when the cursor is hidden already and stop() cannot stop it yet
            self._show_cursor()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        self._show_cursor()

    def _show_cursor(self) -> None:
        # Not through the console, which writes nothing any more where a signal came as it began to.
        if self._is_shown:
            file = self._bar.console.file
            file.write(_SHOW_CURSOR)
            file.flush()

    def found(self, size: int | None) -> None:
        """How many bytes all files have; None when it is not known of all of them."""
        self._bar.update(self._task, total=size)

    def read(self, file: Path, done: int) -> None:
        """So many bytes of a file have been read."""
        if not self._is_shown:
            return
        if file != self._file:
            self._before += self._in_file
            self._file = file
            name = Text(printable(file.name))
            name.truncate(24, overflow="ellipsis")
            self._bar.update(self._task, file=name.plain.replace("[", "\\["))
        self._in_file = done
        self._bar.update(self._task, completed=self._before + done)

    def say(self, line: str) -> None:
        """Print a line on standard error, above the bar."""
        if self._is_shown:
            self._bar.console.print(Text(line), soft_wrap=True)
        else:
            typer.echo(line, err=True)

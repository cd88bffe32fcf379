"""A path as somebody typed it: an empty one, as of a variable that was not set, is not this folder."""

from __future__ import annotations

from pathlib import Path

import typer


def path_of(text: str) -> Path:
    """A path. Whether it can be read is seen when it is: then the others are read all the same.

    Raises:
        typer.BadParameter: It is empty.
    """
    if not text:
        raise typer.BadParameter("is empty")
    return Path(text)


def folder_of(text: str) -> Path:
    """The path of a folder, which need not be there.

    Raises:
        typer.BadParameter: It is empty, or that of a file.
    """
    path = path_of(text)
    if path.is_file():
        raise typer.BadParameter(f"{text} is a file")
    return path

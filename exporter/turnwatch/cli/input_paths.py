"""What the commands that read runs are told to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def path_of(text: str) -> Path:
    """A path as it was typed. Whether it can be read is seen when it is: then the others are read all the same.

    Raises:
        typer.BadParameter: It is empty, as a variable is that was not set. As a path that would be this folder.
    """
    if not text:
        raise typer.BadParameter("is empty")
    return Path(text)


InputPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...", parser=path_of, help="Files, folders, quoted patterns ('runs/**/*.jsonl'), - for stdin."
    ),
]

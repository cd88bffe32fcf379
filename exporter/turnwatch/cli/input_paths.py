"""What the commands that read runs are told to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnwatch.cli.typed_path import path_of

InputPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...", parser=path_of, help="Files, folders, quoted patterns ('runs/**/*.jsonl'), - for stdin."
    ),
]

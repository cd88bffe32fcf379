"""Two numbers a signal in a small file: accepted to be passed on, and settled. Their difference is what a kill lost.

The file is mapped into memory, so a number costs no system call and outlives the process even where it is killed with
SIGKILL; it does not outlive the machine's power.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from pathlib import Path
from typing import Final

from turnwatch.service.signals import PATHS, Signal

_MAGIC: Final = b"turnwatch-fwd-1\n"
_NUMBER: Final = struct.Struct("<Q")
_ACCEPTED: Final[dict[Signal, int]] = {signal: 16 + 16 * place for place, signal in enumerate(PATHS)}
_SIZE: Final = 16 + 16 * len(PATHS)


def default_state_folder() -> Path:
    """Where programs keep state: ``$XDG_STATE_HOME/turnwatch``, else ``~/.local/state/turnwatch``."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "turnwatch"


class Ledger:
    """The file of one service. Only one process may have it open.

    Args:
        path: Made, with its folders, where it is not there.

    Raises:
        OSError: it cannot be made, or another process has it (BlockingIOError).
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._file).st_size != _SIZE:
                os.ftruncate(self._file, 0)
                # Not only stretched: on a full disk, the first write into a hole ends the process by SIGBUS.
                os.write(self._file, bytes(_SIZE))
            self._numbers = mmap.mmap(self._file, _SIZE)
        except OSError:
            os.close(self._file)
            raise
        self._lost: dict[Signal, int] = {}
        if self._numbers[:16] == _MAGIC:
            for signal in PATHS:
                self._lost[signal] = max(0, self._read(_ACCEPTED[signal]) - self._read(_ACCEPTED[signal] + 8))
        self._numbers[:] = _MAGIC + bytes(_SIZE - 16)

    def lost_before(self) -> dict[Signal, int]:
        """Items that the process before this one had accepted and neither passed on nor counted as dropped."""
        return {signal: items for signal, items in self._lost.items() if items}

    def accepted(self, signal: Signal, items: int) -> None:
        """These are to be passed on."""
        self._add(_ACCEPTED[signal], items)

    def settled(self, signal: Signal, items: int) -> None:
        """These were passed on, or counted as dropped."""
        self._add(_ACCEPTED[signal] + 8, items)

    def close(self) -> None:
        """Let go of the file."""
        self._numbers.close()
        os.close(self._file)

    def _read(self, at: int) -> int:
        return int(_NUMBER.unpack_from(self._numbers, at)[0])

    def _add(self, at: int, items: int) -> None:
        _NUMBER.pack_into(self._numbers, at, self._read(at) + items)

"""The screen that stays: drawn when something is new or a key is pressed."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live

from turnwatch.top.board import Board
from turnwatch.top.frame import frame_of
from turnwatch.top.keys import KeyReader
from turnwatch.top.view import View, after

try:
    import termios
    import tty
except ImportError:  # not a POSIX system
    CAN_WATCH = False
else:
    CAN_WATCH = True

_ESCAPE_SECONDS: Final = 0.05
"""For how long an escape may be the beginning of an arrow key: ssh sends those in one piece."""

_IDLE_SECONDS: Final = 1.0
_LEAVING: Final = ("SIGINT", "SIGTERM", "SIGHUP")


class Wakeup:
    """A pipe that wakes the loop: what is new at a source, and every signal. ``ring`` may be called from any thread."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)

    def ring(self) -> None:
        """Wake the loop."""
        with suppress(BlockingIOError):  # it is awake already
            os.write(self._writer, b"\0")

    def heard(self) -> bytes:
        """What has come: the numbers of signals, and 0 for what is new."""
        with suppress(BlockingIOError):
            return os.read(self.reader, 4096)
        return b""

    @contextmanager
    def with_signals(self) -> Iterator[None]:
        """Let signals wake the loop instead of ending the process, until the context closes."""
        names = (*_LEAVING, "SIGWINCH", "SIGTSTP", "SIGCONT")
        before = {number: signal.signal(number, lambda *_: None) for number in map(signal.Signals.__getitem__, names)}
        fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(fd)
            for number, handler in before.items():
                signal.signal(number, handler)


def watch(board: Callable[[], Board], view: View, wakeup: Wakeup) -> None:
    """Show the board until the user quits. The terminal is as it was afterwards, however it ends.

    Args:
        board: Makes what is shown now.
        view: What is chosen at the beginning.
        wakeup: Rung when a source has news.
    """
    shown: Board | None = None
    with wakeup.with_signals():
        while not view.has_quit:
            with _raw(sys.stdin.fileno()):
                view, shown = _until_left(board, view, wakeup, shown)
            if not view.has_quit:
                _suspend()


def _until_left(
    board: Callable[[], Board], view: View, wakeup: Wakeup, shown: Board | None
) -> tuple[View, Board | None]:
    """Run until the user quits or suspends; what was last chosen and shown."""
    console = Console(highlight=False)
    keyboard = KeyReader()
    stdin = sys.stdin.fileno()
    over = replace(view, has_quit=True)
    is_old = True
    with suppress(OSError), Live(console=console, screen=True, auto_refresh=False) as live:  # OSError: terminal gone
        while True:
            if is_old:  # in a pause, too: what happens meanwhile happens at its own time
                latest, is_old = board(), False
            if shown is None or not view.is_paused:
                shown = latest
            view = _draw(live, console, shown, view)
            patience = _ESCAPE_SECONDS if keyboard.is_waiting else _IDLE_SECONDS
            ready, _, _ = select.select([stdin, wakeup.reader], [], [], patience)
            if wakeup.reader in ready:
                heard = wakeup.heard()
                is_old |= 0 in heard
                signals = {signal.Signals(number).name for number in heard if number}
                if signals.intersection(_LEAVING):
                    return over, shown
                if "SIGTSTP" in signals:
                    return view, shown
            if stdin in ready:
                data = os.read(stdin, 1024)
                if not data:
                    return over, shown
                keys = keyboard.take(data)
            else:
                keys = keyboard.nothing_followed() if not ready else []
                is_old |= not ready and not keys
            for key in keys:
                view = after(view, key)
            if view.has_quit:
                return view, shown
    return over, shown


def _draw(live: Live, console: Console, board: Board, view: View) -> View:
    # Not the console's own idea of the size: that is COLUMNS and LINES, which a shell may have exported long ago.
    width, height = os.get_terminal_size(sys.stdout.fileno())
    width, height = width or 80, height or 24  # a serial line says 0 by 0
    console.size = ConsoleDimensions(width, height)
    frame = frame_of(board, view, width, height)
    live.update(Group(*frame.lines), refresh=True)
    return replace(view, offset=frame.offset)


@contextmanager
def _raw(stdin: int) -> Iterator[None]:
    """Let keys come one by one and unseen; Ctrl-C and Ctrl-Z stay signals."""
    before = termios.tcgetattr(stdin)
    try:
        tty.setcbreak(stdin)
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(stdin, termios.TCSADRAIN, before)


def _suspend() -> None:
    ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, ours)

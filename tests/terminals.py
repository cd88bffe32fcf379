"""What a program writes to a terminal that a test holds the other end of."""

import os


def read_until(terminal: int, text: bytes) -> bytes:
    """Everything that comes until this text has come."""
    shown = b""
    while text not in shown:
        shown += os.read(terminal, 4096)
    return shown


def read_to_end(terminal: int) -> bytes:
    """Everything that comes until the program's end of the terminal is closed."""
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # the other end is closed
        pass
    return shown

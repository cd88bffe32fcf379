"""A port of one's own."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def kept_port() -> Iterator[int]:
    """A port on which nobody listens, and that no other process is given meanwhile.

    Whoever is told it may listen there, end, and listen again, as long as it allows that its address is used again
    (SO_REUSEADDR, which servers do).
    """
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]

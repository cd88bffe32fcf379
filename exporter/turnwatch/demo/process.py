"""A server program as a child process: started on a free port, waited for, always stopped."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from turnwatch.demo import loopback
from turnwatch.errors import TurnwatchError

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_ATTEMPTS = 3


class ServerFailedError(TurnwatchError):
    """A server did not come up. The message ends with the last lines of its log."""


@contextmanager
def running(name: str, command_for: Callable[[str], list[str]], folder: Path) -> Iterator[str]:
    """Run a server while the context is open.

    Args:
        name: What to call it in errors and for its log file.
        command_for: Makes the command line for a listen address (``127.0.0.1:port``).
        folder: Where its log goes.

    Yields:
        The server's URL, once it says that it is ready.

    Raises:
        ServerFailedError: It ended, or was not ready in time.
    """
    # The port is free when it is looked up and may be gone when the server binds it: then another is tried.
    for attempt in range(1, _ATTEMPTS + 1):
        address = f"127.0.0.1:{_free_port()}"
        log = folder / f"{name}.log"
        with log.open("w") as log_file:
            # A session of its own: Ctrl-C reaches only the parent, which then stops its children in order.
            child = subprocess.Popen(
                [*_dying_with_its_parent(), *command_for(address)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            if _becomes_ready(child, f"http://{address}/-/ready"):
                yield f"http://{address}"
                return
        finally:
            _stop(child)
        said = log.read_text(errors="replace")
        if attempt == _ATTEMPTS or "address already in use" not in said:
            raise ServerFailedError("\n".join([f"{name} did not start:", *said.splitlines()[-5:]]))


def _dying_with_its_parent() -> list[str]:
    """Return the prefix of a command line that ends with this process even where this is killed outright."""
    return ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


def _becomes_ready(child: subprocess.Popen[bytes], url: str) -> bool:
    def is_ready_or_gone() -> bool:
        return child.poll() is not None or bool(loopback.get(url))

    try:
        loopback.wait_until(is_ready_or_gone, url, timeout_seconds=_START_SECONDS)
    except TimeoutError:
        return False
    return child.poll() is None


def _stop(child: subprocess.Popen[bytes]) -> None:
    try:
        child.terminate()
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # Also when a second Ctrl-C cuts the waiting short.
        child.kill()
        child.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

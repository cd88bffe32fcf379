"""JSON over HTTP to a server on this machine."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

# A proxy set in the environment is for the world outside; every address here is on loopback.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url: str, *, timeout_seconds: float = 5.0) -> str:
    """Return the body of ``url``.

    Raises:
        OSError: No answer, or an answer that says it failed (``urllib.error.HTTPError``).
    """
    with _direct.open(url, timeout=timeout_seconds) as answer:
        body: bytes = answer.read()
    return body.decode()


def get_json(url: str) -> Any:
    """Return the decoded JSON body of ``url``. Raises what ``get`` raises."""
    return json.loads(get(url))


def wait_until(holds: Callable[[], bool], what: str, *, timeout_seconds: float, poll_seconds: float = 0.05) -> None:
    """Return as soon as ``holds()`` is true; an OSError from it means not yet.

    Raises:
        TimeoutError: It did not become true in time. The message names ``what``.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            if holds():
                return
        except OSError:
            pass
        if time.monotonic() >= deadline:
            raise TimeoutError(f"waited {timeout_seconds:g} s for {what}")
        time.sleep(poll_seconds)

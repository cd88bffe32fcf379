"""A webhook receiver: what Alertmanager would send to a pager, and when."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Notification:
    """One alert out of one webhook call.

    Attributes:
        at: When it came, in seconds since the epoch.
        status: "firing" or "resolved".
        labels, annotations: As the alert carries them.
    """

    at: float
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Webhook:
    """Notifications received so far. Safe to use from several threads."""

    def __init__(self) -> None:
        self.url = ""
        self._received: list[Notification] = []
        self._changed = threading.Condition()

    @property
    def received(self) -> list[Notification]:
        """Every notification so far, in order of arrival."""
        with self._changed:
            return list(self._received)

    def wait_for(self, wanted: Callable[[Notification], bool], *, timeout_seconds: float) -> Notification | None:
        """Return the first notification that is ``wanted``, past or to come; None when none comes in time."""

        def found() -> Notification | None:
            return next((one for one in self._received if wanted(one)), None)

        with self._changed:
            return self._changed.wait_for(found, timeout_seconds)

    def _take(self, body: bytes) -> None:
        at = time.time()
        payload: dict[str, Any] = json.loads(body)
        with self._changed:
            for alert in payload["alerts"]:
                self._received.append(Notification(at, alert["status"], alert["labels"], alert["annotations"]))
            self._changed.notify_all()


@contextmanager
def receiving() -> Iterator[Webhook]:
    """Receive webhooks on a free loopback port while the context is open."""
    webhook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            webhook._take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the timeline tells what came."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        webhook.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield webhook
        finally:
            server.shutdown()
            thread.join()

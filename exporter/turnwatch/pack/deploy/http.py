"""JSON over HTTP to a server's administration interface."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final

from turnwatch.pack.deploy.changes import DeployError

_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer.

    Attributes:
        status: The HTTP status.
        text: The body.
    """

    status: int
    text: str

    @property
    def is_ok(self) -> bool:
        """Whether the server did as it was asked."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            DeployError: It is none.
        """
        try:
            return json.loads(self.text)
        except ValueError:
            raise DeployError(f"the server answered {self.status} with something else than JSON") from None


@dataclass(frozen=True, slots=True)
class Server:
    """A server under a base URL. The token is sent with every request and shown nowhere."""

    url: str
    token: str | None = field(default=None, repr=False)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request and return the answer, whatever its status.

        Raises:
            DeployError: There was no answer.
        """
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(self.url.rstrip("/") + path, data, headers, method=method)
            with urllib.request.urlopen(request, timeout=_SECONDS) as reply:
                return Answer(reply.status, reply.read().decode(errors="replace"))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode(errors="replace"))
        except (OSError, ValueError) as error:
            raise DeployError(f"{self.url} does not answer: {getattr(error, 'reason', error)}") from None

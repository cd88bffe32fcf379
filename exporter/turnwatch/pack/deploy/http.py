"""JSON over HTTP to a server's administration interface."""

from __future__ import annotations

import json
import re
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from turnwatch.core.printable import printable
from turnwatch.http_answer import Answer, NoAnswerError, exchange
from turnwatch.pack.deploy.changes import DeployError

SECONDS: Final = 30.0
"""For a whole request, however slowly the answer comes."""
_SAID: Final = 300
_TOKEN: Final = re.compile(r"[!-~]+")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an answer: following it would carry the token to another server, and make a POST a GET."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


class ServerAnswer(Answer):
    """An answer, read as those of administration interfaces are."""

    __slots__ = ()

    @property
    def is_ok(self) -> bool:
        """Whether the server did as it was asked."""
        return 200 <= self.status < 300

    @property
    def said(self) -> str:
        """The beginning of the body, fit to be shown; of a page for people, that it is one."""
        if self.text.lstrip()[:1] == "<":
            return "a page of HTML, as no interface does: is the address right?"
        return printable(" ".join(self.text.split()))[:_SAID]

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            DeployError: It is none.
        """
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            raise DeployError(f"the server answered {self.status} with something else than JSON") from None


@dataclass(frozen=True, slots=True)
class Server:
    """A server under a base URL. The token is sent with every request, to this server only, and shown nowhere.

    Raises:
        DeployError: The URL is no http:// or https:// one, or holds a password; or the token cannot be one.
    """

    url: str
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """See that requests can be made."""
        shown = printable(self.url.rpartition("@")[2])
        try:
            parts = urlsplit(self.url)
            is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if "@" in self.url:
            raise DeployError(f"no user or password in the URL of {shown}: every process could read it there")
        if not is_usable:
            raise DeployError(f"{shown} is no http:// or https:// URL")
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise DeployError(f"the token for {shown} is not one line of visible ASCII characters")

    def ask(self, method: str, path: str, body: object = None) -> ServerAnswer:
        """Send a request and return the answer, whatever its status.

        Raises:
            DeployError: There was none in time, it was too long, or it led to another address.
        """
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url.rstrip("/") + path, data, headers, method=method)
        try:
            answer = exchange(_opener, request, SECONDS)
        except NoAnswerError as error:
            said = printable(self._without_token(str(error)))[:_SAID]
            raise DeployError(f"{self.url} does not answer as it should: {said}") from None
        if 300 <= answer.status < 400:
            place = printable(answer.location.partition("?")[0])
            raise DeployError(f"{self.url} leads on to {place or 'nowhere'}: name the address itself")
        return ServerAnswer(answer.status, self._without_token(answer.text))

    def _without_token(self, text: str) -> str:
        """A server in between may say what it was sent."""
        return text if self.token is None else text.replace(self.token, "…")

"""Where a source is, and what is sent to it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from turnwatch.errors import SettingsError

_SCHEMES: Final = ("http", "https")


@dataclass(frozen=True, slots=True)
class Address:
    """An http:// or https:// address.

    Attributes:
        url: Without user, password, query and fragment: fit to be shown.
        query: What followed the question mark.
        headers: Sent with every request and shown nowhere.
    """

    url: str
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> str:
        """The path, without a slash at its end."""
        return urlsplit(self.url).path.rstrip("/")

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        host = urlsplit(self.url).hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")

    def below(self, path: str) -> str:
        """The URL of something below this address, without the query."""
        return self.url.rstrip("/") + path

    @property
    def whole(self) -> str:
        """The URL as it was given, query included."""
        return f"{self.url}?{self.query}" if self.query else self.url


def address_of(text: str, headers: Mapping[str, str]) -> Address:
    """Read an address; ``host:port`` is http://.

    Raises:
        SettingsError: It is none. The message names it.
    """
    shown = text.rpartition("@")[2]  # what stands before may be a password
    fault = SettingsError(f"{shown!r} is no address: http://HOST:PORT, https://... or HOST:PORT is needed")
    if not text.isprintable() or " " in text:
        raise fault
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise fault from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise fault
    own = {} if parts.username is None else {"Authorization": _basic(parts)}
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = host if port is None else f"{host}:{port}"
    return Address(urlunsplit((parts.scheme, place, parts.path, "", "")), parts.query, {**own, **headers})


def headers_of(lines: Sequence[str]) -> dict[str, str]:
    """Read ``Name: value`` lines.

    Raises:
        SettingsError: One has no colon or no name, or holds control characters. The message does not hold its value.
    """
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.strip()
        if not colon or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise SettingsError("--header: 'Name: value' is needed, as in --header 'Authorization: Bearer ...'")
        if not value.strip().isprintable():
            raise SettingsError(f"--header: the value of {name} holds control characters")
        headers[name] = value.strip()
    return headers


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()

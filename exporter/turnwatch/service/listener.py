"""An HTTP server on one address: uvicorn, with deadlines for headers and without signal handlers of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from turnwatch.errors import SettingsError
from turnwatch.settings import Service

_HEADER_BYTES: Final = 65_536
KEEP_ALIVE_SECONDS: Final = 75
"""For how long a connection stays open over which nothing comes."""
_MOST_PIPELINED: Final = 32
# How much of a body that nobody wants is still read, so that its sender gets to see the answer, and how long a pause
# in it is waited for.
_LINGER_BYTES: Final = 33_554_432
_LINGER_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files of a TLS certificate (with its chain) and its key, in PEM."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Load both.

        Raises:
            SettingsError: they cannot be read, do not belong together, or the key needs a passphrase.
        """
        both = f"certificate {self.certificate} with key {self.key}"

        def passphrase() -> str:  # OpenSSL would ask at the terminal
            raise SettingsError(f"{both}: the key is protected by a passphrase, which cannot be given")

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, passphrase)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"{both}: {error.strerror or type(error).__name__}") from None


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        SettingsError: the address is taken or cannot be had.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=512)
    except OSError as error:
        raise SettingsError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


class Listener(uvicorn.Server):
    """Serves an ASGI app on a socket that is bound already.

    Args:
        certificate: None serves without TLS.
    """

    def __init__(
        self, app: ASGIApp, bound: socket.socket, limits: Service, certificate: Certificate | None = None
    ) -> None:
        class Protocol(_PatientProtocol):
            header_timeout = limits.header_timeout_s

        self._bound = bound
        self._protocol = Protocol
        self._handshake_seconds = limits.header_timeout_s
        super().__init__(
            uvicorn.Config(
                _LastingConnection(app, limits.body_timeout_s),
                http=Protocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                access_log=False,
                log_config=None,
                log_level="error",
                server_header=False,
                proxy_headers=False,
                limit_concurrency=limits.max_connections,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                # Whoever is in the middle of a body may finish it.
                timeout_graceful_shutdown=max(1, round(limits.body_timeout_s)),
                ssl_certfile=None if certificate is None else str(certificate.certificate),
                ssl_keyfile=None if certificate is None else str(certificate.key),
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs several listeners."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, as uvicorn's own does, which gives a client a minute for its TLS handshake and half for its end."""
        config = self.config
        patience = None if config.ssl is None else self._handshake_seconds
        server = await asyncio.get_running_loop().create_server(
            lambda: self._protocol(config=config, server_state=self.server_state, app_state={}),
            sock=self._bound,
            ssl=config.ssl,
            backlog=config.backlog,
            ssl_handshake_timeout=patience,
            ssl_shutdown_timeout=patience,
        )
        self.servers = [server]
        self.started = True

    async def run_until_stopped(self) -> None:
        """Serve until ``stop``; then finish what is under way."""
        await self.serve(sockets=[self._bound])

    def stop(self) -> None:
        """Take no new connection and end."""
        self.should_exit = True

    async def wait_until_started(self) -> None:
        """Return when requests are answered."""
        while not self.started:
            await asyncio.sleep(0.01)


class _LastingConnection:
    """An app each of whose answers reaches its client, also where it comes before the end of the request's body.

    Such an answer is sent at once, then some more of the body is read, and the connection closes. Closing while the
    client still sends would reset the connection, and with it would go the answer that the client did not read yet.

    Args:
        body_seconds: For how long a body is read after its answer, as long as it comes.
    """

    def __init__(self, app: ASGIApp, body_seconds: float) -> None:
        self._app = app
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        more_body = any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in scope["headers"]
        )

        async def watched() -> Message:
            nonlocal more_body
            message = await receive()
            more_body = message["type"] == "http.request" and message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            if more_body and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            elif more_body and not message.get("more_body", False):
                await send({**message, "more_body": True})
                left = _LINGER_BYTES
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._body_seconds):
                        while more_body and left > 0:
                            read = await asyncio.wait_for(watched(), _LINGER_SECONDS)
                            left -= len(read.get("body", b""))
                message = {"type": "http.response.body"}
            await send(message)

        await self._app(scope, watched, answer)


class _PatientProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1, which waits only so long, and for so many bytes, for the end of headers."""

    header_timeout = 10.0
    _headers_began: float | None = None
    _is_between_bodies = True
    _got_somewhere = False
    _bytes_since = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        self._got_somewhere = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._got_somewhere:
            self._headers_began, self._bytes_since = None, 0
            return
        # Headers, trailers, or what else may stand round bodies: the parser holds all of it until it ends.
        self._bytes_since += len(data)
        if self._bytes_since > _HEADER_BYTES:
            self.send_400_response("Too many header bytes.")
        elif self._is_between_bodies and (self.cycle is None or self.cycle.response_complete):
            self._await_headers()

    def on_message_begin(self) -> None:
        # One read may hold ten thousand small requests, and each that waits takes some kilobytes.
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise ValueError("too many requests wait on one connection")  # which the parser makes a 400
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # A trailer says nothing of how the request is to be read (RFC 9110, 6.5.1).
        if self._is_between_bodies:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._got_somewhere, self._is_between_bodies = True, False

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._got_somewhere = True

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._got_somewhere = self._is_between_bodies = True

    def _await_headers(self) -> None:
        # From the first byte, however many more dribble in.
        now = self.loop.time()
        if self._headers_began is None:
            self._headers_began = now
        if self.timeout_keep_alive_task is None:
            due = max(0.0, self._headers_began + self.header_timeout - now)
            self.timeout_keep_alive_task = self.loop.call_later(due, self.timeout_keep_alive_handler)

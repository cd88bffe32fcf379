"""The life of ``turnwatch serve``: start everything, run until told to stop, drain."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import ipaddress
import logging
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import prometheus_client
from starlette.types import ASGIApp

from turnwatch.core.watch import Watch
from turnwatch.service.forward import Forwarder
from turnwatch.service.forward_queue import ForwardQueue
from turnwatch.service.grpc_receiver import GrpcReceiver
from turnwatch.service.health import Health, metrics_app
from turnwatch.service.intake import Intake
from turnwatch.service.ledger import Ledger, default_state_folder
from turnwatch.service.listener import Certificate, Listener, bound_socket
from turnwatch.service.pending import PendingBodies
from turnwatch.service.receiver import Receiver
from turnwatch.sources.spans.assembly import Assembler

_TICK_SECONDS: Final = 1.0
# The SDK's batches are five seconds apart, and the span that names the agent is often in the one after its calls.
_NAME_SECONDS: Final = 6.0
# The counting thread holds the interpreter lock for long stretches; with Python's own 5 ms the event loop would wait
# that long each time it comes back from the network.
_SWITCH_SECONDS: Final = 0.0005
# What turns are made of lives for seconds and is freed without the collector's help. At Python's own 700 new objects it
# would look at all open turns again and again, which costs a fifth of the whole work.
_NEW_OBJECTS: Final = 50_000

logger = logging.getLogger("turnwatch.service")


@dataclass(frozen=True, slots=True)
class Places:
    """Where the service listens and where it passes things on.

    Attributes:
        port, grpc_port, metrics_port: 0 picks a free one; grpc_port None switches gRPC off.
        forward: Base address of the next OTLP receiver; None passes nothing on.
        state_folder: Where the forward queue's ledger is kept; None for the user's own state folder.
        certificate: TLS for both receivers.
    """

    host: str = "127.0.0.1"
    port: int = 4318
    grpc_port: int | None = 4317
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 9464
    forward: str | None = None
    state_folder: Path | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the service listens, once it does."""

    http: str
    grpc: str | None
    metrics: str


def run_service(
    watch: Watch,
    registry: prometheus_client.CollectorRegistry,
    places: Places,
    on_started: Callable[[Addresses], None] = lambda _: None,
) -> None:
    """Run until SIGTERM or SIGINT, then drain; a second signal ends the draining.

    Args:
        watch: Counts; its settings bound what is taken.
        registry: What /metrics shows.
        places: Where to listen, and where to pass things on.
        on_started: Told where the service listens, when it does.

    Raises:
        SettingsError: an address is taken, or the certificate cannot be used.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with collecting_rarely():
            asyncio.run(_Service(watch, registry, places).run(on_started))
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    """Have the garbage collector run as seldom as fits a process that holds many small objects for some time."""
    before = gc.get_threshold()
    # Modules and what they hold stay for ever: there is no need to look at them at all.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Service:
    def __init__(self, watch: Watch, registry: prometheus_client.CollectorRegistry, places: Places) -> None:
        self._watch = watch
        self._limits = watch.settings.service
        self._registry = registry
        self._places = places
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self, on_started: Callable[[Addresses], None]) -> None:
        places = self._places
        if places.certificate is not None:
            places.certificate.check()
        if not _is_loopback(places.host) and self._limits.token is None:
            logger.warning("listening on %s without a token: whoever reaches it may send", places.host)
        turns = Assembler(
            self._watch,
            grace_seconds=self._limits.turn_grace_s,
            settle_seconds=self._limits.turn_settle_s,
            idle_seconds=self._limits.turn_idle_s,
            name_seconds=_NAME_SECONDS,
            outcome_seconds=self._limits.turn_grace_s,
        )
        intake = Intake(self._watch, turns)
        health = Health(lambda: intake.is_stalled)
        pending = PendingBodies(self._limits)
        self._listen_to_signals()
        async with contextlib.AsyncExitStack() as running:
            metrics = await self._listen(
                running.push_async_callback,
                metrics_app(self._registry, health),
                places.metrics_host,
                places.metrics_port,
            )
            ledger = self._open_ledger(running)
            queue = await self._forwarding(running, ledger)
            # In a thread: where many turns are open it takes seconds, and the metrics are scraped meanwhile.
            running.push_async_callback(asyncio.to_thread, intake.close)
            await running.enter_async_context(self._ticking(intake))
            at_end = await running.enter_async_context(_called_together())
            grpc_address = None
            if places.grpc_port is not None:
                receiver = GrpcReceiver(self._watch, intake, pending, queue)
                port = await receiver.start(places.host, places.grpc_port, places.certificate)
                at_end(functools.partial(receiver.stop, self._limits.body_timeout_s))
                grpc_address = f"{places.host}:{port}"
            app = Receiver(self._watch, intake, pending, health, queue).app
            http = await self._listen(at_end, app, places.host, places.port, places.certificate)
            health.is_ready = True
            on_started(Addresses(http, grpc_address, metrics))
            await self._stop.wait()
            # Leaving undoes all this from the last to the first: requests, turns, forwarding, metrics.
            health.is_ready = False

    async def _listen(
        self,
        at_end: Callable[[Callable[[], Awaitable[None]]], object],
        app: ASGIApp,
        host: str,
        port: int,
        certificate: Certificate | None = None,
    ) -> str:
        bound = bound_socket(host, port)
        listener = Listener(app, bound, self._limits, certificate)
        serving = asyncio.create_task(listener.run_until_stopped())

        async def stop() -> None:
            listener.stop()
            await serving

        at_end(stop)
        await listener.wait_until_started()
        scheme = "http" if certificate is None else "https"
        return f"{scheme}://{host}:{bound.getsockname()[1]}"

    def _open_ledger(self, running: contextlib.AsyncExitStack) -> Ledger | None:
        if self._places.forward is None:
            return None
        folder = self._places.state_folder or default_state_folder()
        path = folder / f"forward-{self._places.port}"
        try:
            ledger = Ledger(path)
        except OSError as error:
            logger.warning("%s: %s; what a kill loses will not be counted", path, error.strerror or error)
            return None
        running.callback(ledger.close)
        return ledger

    async def _forwarding(self, running: contextlib.AsyncExitStack, ledger: Ledger | None) -> ForwardQueue | None:
        if self._places.forward is None:
            return None
        queue = ForwardQueue(self._watch, self._limits.forward_queue_bytes, ledger)
        sending = asyncio.create_task(Forwarder(self._watch, self._places.forward, queue).run())

        async def drain() -> None:
            await queue.close()
            hurry = asyncio.create_task(self._hurry.wait())
            await asyncio.wait(
                {sending, hurry}, timeout=self._limits.drain_timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            hurry.cancel()
            sending.cancel()
            await asyncio.gather(sending, hurry, return_exceptions=True)

        running.push_async_callback(drain)
        return queue

    @contextlib.asynccontextmanager
    async def _ticking(self, intake: Intake) -> AsyncIterator[None]:
        async def tick() -> None:
            while True:
                await asyncio.wrap_future(intake.tick())
                await asyncio.sleep(_TICK_SECONDS)

        ticking = asyncio.create_task(tick())
        try:
            yield
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)

    def _listen_to_signals(self) -> None:
        def asked_to_stop() -> None:
            if self._stop.is_set():
                self._hurry.set()
            self._stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, asked_to_stop)


@contextlib.asynccontextmanager
async def _called_together() -> AsyncIterator[Callable[[Callable[[], Awaitable[None]]], None]]:
    """Keeps what is to be called at the end, all at once: no port stays open while another's last request ends."""
    stops: list[Callable[[], Awaitable[None]]] = []
    try:
        yield stops.append
    finally:
        await asyncio.gather(*(stop() for stop in stops))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

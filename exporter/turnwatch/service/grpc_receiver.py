"""OTLP over gRPC: TraceService and LogsService, and MetricsService where everything is passed on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from turnwatch.core.watch import Watch
from turnwatch.errors import SettingsError
from turnwatch.service.access import authorizes
from turnwatch.service.forward_queue import ForwardQueue
from turnwatch.service.grpc_reading import MessageReading
from turnwatch.service.intake import Intake
from turnwatch.service.listener import KEEP_ALIVE_SECONDS, Certificate, bound_socket
from turnwatch.service.pending import PendingBodies
from turnwatch.service.refusal import BUSY, FAULT, RETRY_AFTER_SECONDS, UNAUTHORIZED, Refusal
from turnwatch.service.signals import CONTENT_TYPES, Signal, response

_SERVICES: Final[dict[Signal, str]] = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
}
Context = grpc.aio.ServicerContext[Any, Any]
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_STREAMS_PER_CONNECTION: Final = 100


class GrpcReceiver:
    """Answers export calls. Messages stay bytes until the intake decodes them, and are passed on as those bytes.

    Args:
        intake: Decodes and counts.
        pending: Where messages are held while they wait.
        queue: Takes what is to be passed on; None where nothing is.
    """

    def __init__(self, watch: Watch, intake: Intake, pending: PendingBodies, queue: ForwardQueue | None = None) -> None:
        self._watch = watch
        self._limits = watch.settings.service
        self._intake = intake
        self._pending = pending
        self._queue = queue
        self._reading = MessageReading(self._limits)
        self._server: grpc.aio.Server | None = None

    async def start(self, host: str, port: int, certificate: Certificate | None = None) -> int:
        """Listen.

        Returns:
            The port, which is a free one where 0 was asked for.

        Raises:
            SettingsError: the address is taken or cannot be had.
        """
        # gRPC writes a traceback for every caller that leaves before its answer. Our own faults are counted here.
        logging.getLogger("grpc._cython.cygrpc").setLevel(logging.CRITICAL)
        server = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", self._limits.max_grpc_message_bytes),
                ("grpc.max_concurrent_streams", _STREAMS_PER_CONNECTION),
                # gRPC's own is two minutes.
                ("grpc.server_handshake_timeout_ms", round(1000 * self._limits.header_timeout_s)),
                # For ever otherwise, and each takes a file descriptor that clients over HTTP want as well.
                ("grpc.max_connection_idle_ms", round(1000 * KEEP_ALIVE_SECONDS)),
                ("grpc.so_reuseport", 0),
            ),
        )
        for signal, service in _SERVICES.items():
            if signal == "metrics" and self._queue is None:
                continue
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, self._methods(signal)),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        # gRPC would say itself, in lines of its own, that the address is taken.
        bound_socket(host, port).close()
        try:
            if certificate is None:
                port = server.add_insecure_port(address)
            else:
                pair = (certificate.key.read_bytes(), certificate.certificate.read_bytes())
                port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        except (RuntimeError, OSError):
            raise SettingsError(f"cannot listen on {address}") from None
        await server.start()
        self._server = server
        return port

    async def stop(self, grace_seconds: float) -> None:
        """Take no new call, and finish what is under way within the grace."""
        if self._server is not None:
            await self._server.stop(grace_seconds)

    def _methods(self, signal: Signal) -> dict[str, Any]:
        async def export(messages: AsyncIterator[bytes], context: Context) -> bytes:
            return await self._export(signal, messages, context)

        # Without serializers messages are bytes on both sides. To a server a call with one message is a stream of one;
        # taken as a stream, it is read when this side wants to, and not as soon as somebody sends.
        return {"Export": grpc.stream_unary_rpc_method_handler(export)}

    async def _export(self, signal: Signal, messages: AsyncIterator[bytes], context: Context) -> bytes:
        try:
            rejected, why = await self._take(signal, messages, context)
        except Refusal as refusal:
            await self._refuse(signal, refusal, context)
        except Exception:
            self._watch.internal_error("a call")
            await self._refuse(signal, Refusal(FAULT, "the request could not be handled"), context)
        self._count(signal, "partial" if rejected else "ok")
        return bytes(response(signal, rejected, why).SerializeToString())

    async def _take(self, signal: Signal, messages: AsyncIterator[bytes], context: Context) -> tuple[int, str]:
        given = dict(context.invocation_metadata() or ()).get("authorization")
        if not authorizes(given if isinstance(given, str) else None, self._limits.token):
            raise Refusal(UNAUTHORIZED, "a bearer token is needed")
        body = await self._reading.first(messages)
        # A caller who leaves cancels the call; the body is held, and passed on, all the same.
        return await asyncio.shield(self._take_body(signal, body))

    async def _take_body(self, signal: Signal, body: bytes) -> tuple[int, str]:
        with self._pending.open() as place:
            place.hold(len(body))
            decoded = await asyncio.wrap_future(self._intake.submit(body, signal, "protobuf", "identity"))
            if self._queue is not None:
                await self._queue.offer(signal, body, CONTENT_TYPES["protobuf"], "identity", decoded.items)
        return decoded.rejected, decoded.why

    async def _refuse(self, signal: Signal, refusal: Refusal, context: grpc.aio.ServicerContext[Any, Any]) -> NoReturn:
        self._count(signal, refusal.reason.outcome)
        status = Status(code=refusal.reason.grpc, message=str(refusal))
        if refusal.reason is BUSY:
            detail = AnyMessage()
            detail.Pack(RetryInfo(retry_delay=Duration(seconds=RETRY_AFTER_SECONDS)))
            status.details.append(detail)
        await context.abort(
            _CODES[refusal.reason.grpc],
            str(refusal),
            trailing_metadata=(("grpc-status-details-bin", status.SerializeToString()),),
        )
        raise AssertionError  # abort raises

    def _count(self, signal: Signal, outcome: str) -> None:
        self._watch.count("turnwatch_requests_total", signal, outcome)

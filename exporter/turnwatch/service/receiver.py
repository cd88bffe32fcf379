"""OTLP over HTTP: /v1/traces and /v1/logs, and /v1/metrics where everything is passed on."""

from __future__ import annotations

import asyncio
from typing import Final

from google.protobuf import json_format
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from turnwatch.core.watch import Watch
from turnwatch.service.access import authorizes
from turnwatch.service.decompress import check_encoding
from turnwatch.service.forward_queue import ForwardQueue
from turnwatch.service.health import Health
from turnwatch.service.intake import Intake
from turnwatch.service.pending import PendingBodies
from turnwatch.service.refusal import (
    FAULT,
    NOT_FOUND,
    TOO_LARGE,
    UNAUTHORIZED,
    UNSUPPORTED,
    WRONG_METHOD,
    Refusal,
)
from turnwatch.service.signals import CONTENT_TYPES, FORMS, PATHS, READ, Form, Signal, response

_SIGNALS: Final[dict[str, Signal]] = {path: signal for signal, path in PATHS.items()}


class Receiver:
    """Answers export requests.

    Args:
        intake: Decodes and counts.
        pending: Where bodies are held while they arrive and wait.
        health: Answers /healthz and /readyz on the same port.
        queue: Takes what is to be passed on; None where nothing is.
    """

    def __init__(
        self, watch: Watch, intake: Intake, pending: PendingBodies, health: Health, queue: ForwardQueue | None = None
    ) -> None:
        self._watch = watch
        self._limits = watch.settings.service
        self._intake = intake
        self._queue = queue
        self._pending = pending
        self._others = Starlette(routes=health.routes(), exception_handlers={HTTPException: self._not_routed})
        # /v1/traces/ would otherwise be answered with a redirect, which exporters do not follow with their body.
        self._others.router.redirect_slashes = False

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application. What is exported goes round the routing, which takes as long as all the rest."""
        signal = _SIGNALS.get(scope["path"]) if scope["method"] == "POST" else None
        if signal is None:
            await self._others(scope, receive, send)
        else:
            answer = await self._export(Request(scope, receive), signal)
            await answer(scope, receive, send)

    async def _export(self, request: Request, signal: Signal) -> Response:
        form = FORMS.get(_media_type(request))
        try:
            rejected, why = await self._take(request, signal, form)
        except ClientDisconnect:
            self._count(signal, "disconnected")
            return Response(status_code=400)
        except Refusal as refusal:
            self._count(signal, refusal.reason.outcome)
            return _refused(refusal, form)
        except Exception:
            self._watch.internal_error("a request")
            self._count(signal, FAULT.outcome)
            return _refused(Refusal(FAULT, "the request could not be handled"), form)
        self._count(signal, "partial" if rejected else "ok")
        return _encoded(response(signal, rejected, why), form or "protobuf")

    async def _take(self, request: Request, signal: Signal, form: Form | None) -> tuple[int, str]:
        if not authorizes(request.headers.get("authorization"), self._limits.token):
            raise Refusal(UNAUTHORIZED, "a bearer token is needed", {"www-authenticate": "Bearer"})
        if signal not in READ and self._queue is None:
            raise Refusal(NOT_FOUND, f"{signal} are taken only where they are passed on (--forward)")
        if form is None:
            raise Refusal(UNSUPPORTED, f"content-type is none of {', '.join(CONTENT_TYPES.values())}")
        encoding = request.headers.get("content-encoding", "identity").strip().lower() or "identity"
        check_encoding(encoding)
        if int(request.headers.get("content-length", 0)) > self._limits.max_body_bytes:
            raise Refusal(TOO_LARGE, f"the body is larger than {self._limits.max_body_bytes} bytes")
        with self._pending.open() as place:
            body = await place.read(request.stream())
            decoded = await asyncio.wrap_future(self._intake.submit(body, signal, form, encoding))
            if self._queue is not None:
                content_type = request.headers["content-type"]
                await self._queue.offer(signal, body, content_type, encoding, decoded.items)
        return decoded.rejected, decoded.why

    def _count(self, signal: Signal, outcome: str) -> None:
        self._watch.count("turnwatch_requests_total", signal, outcome)

    async def _not_routed(self, request: Request, error: Exception) -> Response:
        is_known = request.url.path in _SIGNALS
        if is_known:
            refusal = Refusal(WRONG_METHOD, "POST only", {"allow": "POST"})
        else:
            refusal = Refusal(NOT_FOUND, "no such path", dict(getattr(error, "headers", None) or {}))
        return _refused(refusal, FORMS.get(_media_type(request)))


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _encoded(message: Message, form: Form, status: int = 200) -> Response:
    if form == "json":
        content = json_format.MessageToJson(message, indent=None).encode()
    else:
        content = message.SerializeToString()
    return Response(content, status, media_type=CONTENT_TYPES[form])


def _refused(refusal: Refusal, form: Form | None) -> Response:
    """The answer to a request that is not taken: google.rpc.Status in the request's own form."""
    answer = _encoded(Status(code=refusal.reason.grpc, message=str(refusal)), form or "json", refusal.reason.http)
    answer.headers.update(refusal.headers)
    return answer

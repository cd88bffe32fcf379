"""Whether the service lives and wants requests, and its metrics."""

from __future__ import annotations

from collections.abc import Callable

import anyio.to_thread
import prometheus_client
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


class Health:
    """What /healthz and /readyz say.

    Attributes:
        is_ready: Requests are wanted: the service has started and does not stop yet.

    Args:
        is_stalled: Whether the thread that counts has stopped coming round.
    """

    def __init__(self, is_stalled: Callable[[], bool]) -> None:
        self._is_stalled = is_stalled
        self.is_ready = False

    def routes(self) -> list[Route]:
        """The routes of both questions."""
        return [Route("/healthz", self._lives), Route("/readyz", self._wants_requests)]

    async def _lives(self, _: Request) -> Response:
        if self._is_stalled():
            return PlainTextResponse("stalled\n", 503)
        return PlainTextResponse("ok\n")

    async def _wants_requests(self, _: Request) -> Response:
        if not self.is_ready:
            return PlainTextResponse("not ready\n", 503)
        return PlainTextResponse("ready\n")


def metrics_app(registry: prometheus_client.CollectorRegistry, health: Health) -> Starlette:
    """/metrics, /healthz and /readyz, for a port that stays open while the service stops."""

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        # A large exposition takes a tenth of a second, which nobody else should wait for.
        content = await anyio.to_thread.run_sync(encode, registry)
        return Response(content, headers={"content-type": content_type})

    return Starlette(routes=[Route("/metrics", metrics), *health.routes()])

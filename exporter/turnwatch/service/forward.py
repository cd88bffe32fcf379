"""Pass everything on, unchanged, to the next OTLP receiver."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import time
from typing import Final

import httpx2
import tenacity

from turnwatch.core.watch import Watch
from turnwatch.metrics.prometheus import package_version
from turnwatch.service.forward_queue import ForwardQueue, Parcel
from turnwatch.service.signals import PATHS

_SENDERS: Final = 4
_FIRST_WAIT_SECONDS: Final = 0.5
# Short enough that a receiver that is back is found soon; four senders ask no more than once a second together.
_LONGEST_WAIT_SECONDS: Final = 5.0
_AGAIN: Final = frozenset({429, 502, 503, 504})
_LOG_EVERY_SECONDS: Final = 60.0

logger = logging.getLogger("turnwatch.service")


class _NotNow(Exception):
    """The receiver could not be reached or asks for patience."""

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class Forwarder:
    """Sends what stands in the queue, oldest first, a few requests at a time.

    A request is sent again after a connection error, a timeout, 429, 502, 503 or 504: with a doubling wait and jitter,
    or after as long as Retry-After says, until it is ``forward_give_up_s`` old. Any other answer than 2xx ends it.

    Args:
        url: The receiver's base address; the signal's path (``/v1/traces``) is added.
    """

    def __init__(self, watch: Watch, url: str, queue: ForwardQueue) -> None:
        self._watch = watch
        self._limits = watch.settings.service
        self._url = url.rstrip("/")
        scheme, _, place = self._url.partition("://")
        self._shown = f"{scheme}://{place.rpartition('@')[2]}"  # a password may stand before the host
        self._queue = queue
        self._headers = {"user-agent": f"turnwatch/{package_version()}", **self._limits.forward_headers}
        self._not_before = 0.0
        self._last_log: dict[str, float] = {}
        watch.count("turnwatch_forward_retries_total", amount=0)

    async def run(self) -> None:
        """Send until the queue is closed and empty. Where it is cancelled, what is left is dropped and counted."""
        timeout = httpx2.Timeout(self._limits.forward_timeout_s)
        pool = httpx2.Limits(max_connections=_SENDERS, max_keepalive_connections=_SENDERS)
        async with httpx2.AsyncClient(timeout=timeout, limits=pool, headers=self._headers) as client:
            try:
                async with asyncio.TaskGroup() as senders:
                    for _ in range(_SENDERS):
                        senders.create_task(self._send_all(client))
            finally:
                self._queue.drop_waiting("shutdown")

    async def _send_all(self, client: httpx2.AsyncClient) -> None:
        while (parcel := await self._queue.next()) is not None:
            try:
                await self._deliver(client, parcel)
            except asyncio.CancelledError:
                self._queue.dropped(parcel, "shutdown")
                raise
            except Exception:
                self._watch.internal_error("passing a request on")
                self._queue.dropped(parcel, "rejected")

    async def _deliver(self, client: httpx2.AsyncClient, parcel: Parcel) -> None:
        give_up = parcel.accepted + self._limits.forward_give_up_s
        attempts = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(_NotNow),
            wait=self._wait,
            stop=lambda state: time.monotonic() + state.upcoming_sleep > give_up,
            before_sleep=self._note_retry,
        )
        try:
            status: int = await attempts(self._post, client, parcel)
        except tenacity.RetryError:
            self._queue.dropped(parcel, "expired")
            return
        if 200 <= status < 300:
            self._queue.delivered(parcel)
        else:
            self._log("%s answered %d, so the request was dropped", self._shown, status)
            self._queue.dropped(parcel, "rejected")

    async def _post(self, client: httpx2.AsyncClient, parcel: Parcel) -> int:
        # A receiver that asks one sender for patience means all of them.
        while (pause := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(pause)
        headers = {"content-type": parcel.content_type}
        if parcel.encoding != "identity":
            headers["content-encoding"] = parcel.encoding
        try:
            answer = await client.post(self._url + PATHS[parcel.signal], content=parcel.body, headers=headers)
        except httpx2.RequestError as error:
            raise _NotNow(type(error).__name__) from None
        if answer.status_code in _AGAIN:
            raise _NotNow(f"status {answer.status_code}", _retry_after(answer.headers.get("retry-after")))
        return answer.status_code

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, _NotNow) and error.retry_after is not None:
            # Past that, all that waits now is given up: by then the receiver is asked whether it has come round.
            pause = min(error.retry_after, self._limits.forward_give_up_s)
            self._not_before = max(self._not_before, time.monotonic() + pause)
            return error.retry_after
        return float(_BACKOFF(state))

    def _note_retry(self, state: tenacity.RetryCallState) -> None:
        self._watch.count("turnwatch_forward_retries_total")
        why = state.outcome.exception() if state.outcome is not None else None
        self._log("%s cannot take requests now (%s); they wait", self._shown, why)

    def _log(self, message: str, *values: object) -> None:
        now = time.monotonic()
        last = self._last_log.get(message)
        if last is None or now - last >= _LOG_EVERY_SECONDS:
            self._last_log[message] = now
            logger.warning(message, *values)


_BACKOFF: Final = tenacity.wait_random_exponential(
    multiplier=_FIRST_WAIT_SECONDS, max=_LONGEST_WAIT_SECONDS, min=_FIRST_WAIT_SECONDS / 2
)


def _retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for; None where it is absent or makes no sense."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None

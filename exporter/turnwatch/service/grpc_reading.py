"""How many gRPC messages arrive at one moment.

gRPC gathers a whole message in memory of its own before it hands it over, and says nothing of it. So only as many are
read at one moment as there is room for, were each as large as a message may be; the others wait with their senders.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from turnwatch.service.refusal import BUSY, MALFORMED, SLOW, Refusal
from turnwatch.settings import Service

# Whoever is not done after this long makes room for those who wait.
_PATIENCE_SECONDS: Final = 0.5


class MessageReading:
    """Reads the one message of each call. For one event loop's thread."""

    def __init__(self, limits: Service) -> None:
        self._limits = limits
        self._room = asyncio.Semaphore(max(1, limits.max_pending_bytes // limits.max_grpc_message_bytes))
        self._slow: dict[asyncio.Timeout, None] = {}  # reading for longer than the patience, oldest first

    async def first(self, messages: AsyncIterator[bytes]) -> bytes:
        """The call's message.

        Raises:
            Refusal: slow; busy, where it was slow and others waited; or malformed, where there is no message.
        """
        await self._wait_for_room()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._limits.body_timeout_s) as timeout:
                noting = loop.call_later(_PATIENCE_SECONDS, self._slow.setdefault, timeout)
                try:
                    return await anext(messages)
                finally:
                    noting.cancel()
                    self._slow.pop(timeout, None)
        except StopAsyncIteration:
            raise Refusal(MALFORMED, "the call has no message") from None
        except TimeoutError:
            if loop.time() - began < self._limits.body_timeout_s:
                raise Refusal(BUSY, "the message arrived slowly and others needed the room") from None
            raise Refusal(SLOW, f"the message took longer than {self._limits.body_timeout_s:g} s") from None
        finally:
            self._room.release()

    async def _wait_for_room(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await self._room.acquire()
                    return
            except TimeoutError:
                oldest = next(iter(self._slow), None)
                if oldest is not None:
                    self._slow.pop(oldest)
                    oldest.reschedule(asyncio.get_running_loop().time())

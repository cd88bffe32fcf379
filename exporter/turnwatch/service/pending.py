"""Request bodies while they arrive and wait: how large, how slow, and how much of them all together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from turnwatch.service.refusal import BUSY, SLOW, TOO_LARGE, Refusal
from turnwatch.settings import Service


class PendingBodies:
    """The bodies held at one moment. For one event loop's thread.

    Whoever sends in good faith is done within moments. When memory runs short, the body that has been arriving the
    longest is therefore given up, so that slow clients cannot shut out the others.
    """

    def __init__(self, limits: Service) -> None:
        self._limits = limits
        self._bytes = 0
        self._arriving: dict[Body, None] = {}

    def open(self) -> Body:
        """A place for one body, held until the context ends."""
        return Body(self, self._limits)

    def grow(self, body: Body, size: int) -> None:
        """Make room for more of a body.

        Raises:
            Refusal: busy, where this body is the one to give up.
        """
        while self._bytes + size > self._limits.max_pending_bytes:
            oldest = next(iter(self._arriving), body)
            if oldest is body:
                raise Refusal(BUSY, "too much arrives at once")
            oldest.give_up()
        self._bytes += size

    def arriving(self, body: Body) -> None:
        """This body has begun to arrive."""
        self._arriving[body] = None

    def arrived(self, body: Body) -> None:
        """This body is whole, or given up."""
        self._arriving.pop(body, None)

    def shrink(self, size: int) -> None:
        """These bytes are no longer held."""
        self._bytes -= size


class Body:
    """One body. Use as a context; after it the bytes count as gone."""

    def __init__(self, pending: PendingBodies, limits: Service) -> None:
        self._pending = pending
        self._limits = limits
        self._content = bytearray()
        self._held = 0
        self._timeout: asyncio.Timeout | None = None
        self._is_given_up = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    async def read(self, stream: AsyncIterator[bytes]) -> bytes:
        """Read it to its end.

        Raises:
            Refusal: too large, too slow, or busy where it was given up for others.
        """
        self._pending.arriving(self)
        try:
            async with asyncio.timeout(self._limits.body_timeout_s) as self._timeout:
                async for chunk in stream:
                    if self._is_given_up:
                        raise TimeoutError
                    if len(self._content) + len(chunk) > self._limits.max_body_bytes:
                        raise Refusal(TOO_LARGE, f"the body is larger than {self._limits.max_body_bytes} bytes")
                    self._pending.grow(self, len(chunk))
                    self._held += len(chunk)
                    self._content += chunk
                if self._is_given_up:  # and its end came in the same moment
                    raise TimeoutError
        except TimeoutError:
            if self._is_given_up:
                raise Refusal(BUSY, "the body arrived slowly and others needed the room") from None
            raise Refusal(SLOW, f"the body took longer than {self._limits.body_timeout_s:g} s") from None
        finally:
            self._pending.arrived(self)
        content = bytes(self._content)
        self._content.clear()
        return content

    def hold(self, size: int) -> None:
        """Count a body that another server has read already.

        Raises:
            Refusal: busy, where there is no room for it.
        """
        self._pending.grow(self, size)
        self._held += size

    def give_up(self) -> None:
        """Free its memory now; ``read`` raises when it next runs."""
        self._is_given_up = True
        self._pending.arrived(self)
        self._release()
        if self._timeout is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time())

    def _release(self) -> None:
        self._pending.shrink(self._held)
        self._held = 0
        self._content.clear()

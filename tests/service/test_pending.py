"""Bodies that are given up for others, down to the moment."""

import pytest

from turnwatch.service.pending import PendingBodies
from turnwatch.service.refusal import BUSY, Refusal
from turnwatch.settings import Service


async def test_a_body_that_ends_in_the_moment_it_is_given_up_is_refused_and_not_taken_for_an_empty_one():
    pending = PendingBodies(Service(max_pending_bytes=1_500, max_body_bytes=1_024))
    place, other = pending.open(), pending.open()

    async def chunks():
        yield bytes(1_000)
        other.hold(1_000)  # and then nothing but the end of a chunked body, before the loop comes round again

    with place, pytest.raises(Refusal) as refused:
        await place.read(chunks())
    assert refused.value.reason is BUSY

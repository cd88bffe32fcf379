"""The thread that counts."""

from tests.service.bodies import turn_body

from turnwatch.core.watch import Watch
from turnwatch.service.intake import Intake
from turnwatch.sources.spans.assembly import Assembler


def test_a_request_that_cannot_be_counted_is_still_one_to_pass_on(monkeypatch):
    watch = Watch()
    turns = Assembler(watch)
    intake = Intake(watch, turns)

    def broken(now):
        raise ZeroDivisionError

    monkeypatch.setattr(turns, "tick", broken)
    decoded = intake.submit(turn_body(calls=3), "traces", "protobuf", "identity").result(10)
    assert (decoded.items, decoded.rejected, watch.faults) == (4, 0, 1)
    intake.close()

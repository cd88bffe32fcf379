"""The captured bodies of every dialect through the receiver: the numbers that reading them as files gives."""

import httpx2
import pytest
from tests.service.running import JSON, PROTOBUF
from tests.sources.spans.corpus import CountingMeter, added_up, cases, found_in

from turnwatch.core.watch import Watch
from turnwatch.service.health import Health
from turnwatch.service.intake import Intake
from turnwatch.service.pending import PendingBodies
from turnwatch.service.receiver import Receiver
from turnwatch.sources.spans.assembly import Assembler

CLAUDE = [case for case in cases() if case.dialect == "claude_agent_sdk_native"]
BODIES = [
    pytest.param(case, way, id=f"{case.dialect}-{case.name}-{way}")
    for case in cases()
    for way in ("otlp-protobuf", "otlp-json")
    if case.files(way)
]


class InProcess:
    """A receiver without a server, so that each case has turns of its own."""

    def __init__(self):
        self.meter, self.turns, self.now = CountingMeter(), [], 1_790_000_000.0
        watch = Watch(meter=self.meter, clock=lambda: self.now)
        self.intake = Intake(watch, Assembler(watch, on_end=self.turns.append))
        pending = PendingBodies(watch.settings.service)
        self._app = Receiver(watch, self.intake, pending, Health(lambda: False)).app

    async def send(self, files, path="/v1/traces"):
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(self._app), base_url="http://test") as client:
            for file in files:
                self.now += 0.06
                headers = JSON if file.suffix == ".json" else PROTOBUF
                answer = await client.post(path, content=file.read_bytes(), headers=headers)
                assert (answer.status_code, answer.content) == (200, b"{}" if headers is JSON else b"")

    def found(self):
        self.intake.close()
        return added_up(self.turns, self.meter)


@pytest.mark.untraced
@pytest.mark.parametrize(("case", "way"), BODIES)
async def test_the_receiver_counts_what_a_file_counts(case, way):
    receiver = InProcess()
    await receiver.send(case.files(way))
    found, read = receiver.found(), found_in(case, way)
    assert found.numbers == read.numbers
    assert [turn.verdict and turn.verdict.kind for turn in found.turns] == [
        turn.verdict and turn.verdict.kind for turn in read.turns
    ]
    assert (found.missing_arguments, found.faults) == (read.missing_arguments, 0)


def logs_of(case):
    return sorted(case.folder.glob(f"{case.name}.otlp-logs-*.pb"))


@pytest.mark.parametrize("case", CLAUDE, ids=lambda case: case.name)
async def test_arguments_in_log_events_reach_the_spans_that_lack_them(case):
    receiver = InProcess()
    await receiver.send(logs_of(case), "/v1/logs")
    await receiver.send(case.files("otlp-protobuf"))
    found = receiver.found()
    assert found.numbers.tool_calls == case.expected.tool_calls
    assert (found.numbers.repeats, found.missing_arguments) == (case.expected.repeats, 0)


async def test_spans_wait_for_events_that_come_later():
    case, first = (next(one for one in CLAUDE if one.name == name) for name in ("loop", "parallel"))
    receiver = InProcess()
    await receiver.send(logs_of(first), "/v1/logs")
    await receiver.send(first.files("otlp-protobuf"))  # from here on events are expected
    await receiver.send(case.files("otlp-protobuf"))
    receiver.now += 3
    receiver.intake.tick().result()
    await receiver.send(logs_of(case), "/v1/logs")
    found = receiver.found()
    assert found.numbers.repeats == case.expected.repeats + first.expected.repeats
    assert (found.missing_arguments, found.numbers.turns) == (0, 2)


async def test_spans_do_not_wait_for_ever():
    case, first = (next(one for one in CLAUDE if one.name == name) for name in ("loop", "parallel"))
    receiver = InProcess()
    await receiver.send(logs_of(first), "/v1/logs")
    await receiver.send(first.files("otlp-protobuf"))
    await receiver.send(case.files("otlp-protobuf"))
    before = receiver.meter.total("agent_tool_calls_total")
    receiver.now += 11
    receiver.intake.tick().result()
    receiver.now += 30
    receiver.intake.tick().result()
    assert receiver.meter.total("agent_tool_calls_total") - before == case.expected.tool_calls
    assert receiver.found().missing_arguments == case.expected.tool_calls

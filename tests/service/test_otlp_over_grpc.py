"""What a client may send over gRPC, and what it is answered."""

import asyncio

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from tests.service.bodies import log_body, turn_body, turn_request
from tests.service.running import serving

from turnwatch.core.watch import Watch
from turnwatch.service import grpc_receiver
from turnwatch.service.intake import Intake
from turnwatch.service.pending import PendingBodies
from turnwatch.sources.spans.assembly import Assembler

LARGEST = 200_000
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    limits = {"max_grpc_message_bytes": LARGEST, "max_attributes": 50, "max_elements": 10_000}
    with serving(folder, grpc=True, **limits, token="t") as running:
        yield running


@pytest.fixture(scope="module")
def channel(service):
    with grpc.insecure_channel(service.grpc) as channel:
        yield channel


METADATA = (("authorization", "Bearer t"),)


def refusal(channel, body, metadata=METADATA, **more):
    call = channel.unary_unary(EXPORT)
    with pytest.raises(grpc.RpcError) as refused:
        call(body, metadata=metadata, timeout=30, **more)
    return refused.value


def test_traces_are_counted(service, channel):
    answer = TraceServiceStub(channel).Export(turn_request("over grpc", calls=5), metadata=METADATA, timeout=30)
    assert not answer.HasField("partial_success")
    assert service.metric("agent_duplicate_tool_calls_total", agent="over grpc") == 3


def test_logs_are_taken(channel):
    request = ExportLogsServiceRequest.FromString(log_body())
    answer = LogsServiceStub(channel).Export(request, metadata=METADATA, timeout=30)
    assert not answer.HasField("partial_success")


def test_a_span_with_too_many_attributes_is_rejected(channel):
    answer = TraceServiceStub(channel).Export(turn_request(calls=1, more=60), metadata=METADATA, timeout=30)
    assert answer.partial_success.rejected_spans == 1


@pytest.mark.parametrize("body", [b"\xff\xfe\xfd" * 20, turn_body()[:-7]], ids=["random", "truncated"])
def test_what_cannot_be_read_is_an_invalid_argument(channel, body):
    error = refusal(channel, body)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    assert Status.FromString(details).code == 3


def test_without_the_token_nothing_is_taken(channel):
    assert refusal(channel, b"", ()).code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_what_is_too_large_is_refused(channel, compression):
    error = refusal(channel, bytes(LARGEST + 1), compression=compression)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_body_that_would_decode_to_too_many_objects_is_refused(channel):
    assert refusal(channel, b"\x0a\x00" * 20_000).code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_metrics_are_not_a_service_where_nothing_is_passed_on(channel):
    call = channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
    with pytest.raises(grpc.RpcError) as refused:
        call(b"", metadata=METADATA, timeout=30)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_busy_service_asks_for_patience(tmp_path):
    with serving(tmp_path, grpc=True, max_body_bytes=200_000, max_pending_bytes=1024) as service:
        with grpc.insecure_channel(service.grpc) as channel:
            error = refusal(channel, turn_body(text="x" * 2000), ())
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        status = Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
        patience = RetryInfo()
        assert status.details[0].Unpack(patience)
        assert patience.retry_delay.seconds >= 1
        assert service.metric("turnwatch_requests_total", outcome="busy") == 1
        answer = service.post(turn_body(text="x" * 2000))
        assert (answer.status_code, int(answer.headers["retry-after"]) >= 1) == (503, True)


async def test_a_connection_over_which_nothing_comes_is_closed(monkeypatch):
    monkeypatch.setattr(grpc_receiver, "KEEP_ALIVE_SECONDS", 0.5)
    watch = Watch()
    receiver = grpc_receiver.GrpcReceiver(watch, Intake(watch, Assembler(watch)), PendingBodies(watch.settings.service))
    port = await receiver.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))  # with empty settings
    async with asyncio.timeout(20):
        assert await reader.read()  # up to its end
    writer.close()
    await receiver.stop(0)

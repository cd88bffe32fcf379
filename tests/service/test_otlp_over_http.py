"""What a client may send over HTTP, and what it is answered."""

import gzip
import re
import socket
import time
import zlib

import pytest
import requests
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from tests.service.bodies import as_json, log_body, turn_body, turn_request
from tests.service.running import JSON, PROTOBUF, eventually, serving

LARGEST = 200_000


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, max_body_bytes=LARGEST, max_attributes=50, max_elements=10_000) as running:
        yield running


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    """A service that waits half a second for headers, and as long for a body."""
    with serving(tmp_path_factory.mktemp("impatient"), body_timeout_s=0.5, header_timeout_s=0.5) as running:
        yield running


def duplicates(service, agent):
    return service.metric("agent_duplicate_tool_calls_total", agent=agent)


ENCODED = {
    "identity": lambda body: body,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "bare deflate": lambda body: zlib.compress(body, wbits=-15),
    "gzip in two members": lambda body: gzip.compress(body[:100]) + gzip.compress(body[100:]),
}


@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize("form", ["protobuf", "json"])
@pytest.mark.parametrize("encoding", ENCODED)
def test_a_request_is_read_in_every_form(service, form, encoding, chunked):
    agent = f"{form} {encoding} {chunked}"
    request = turn_request(agent, calls=4)
    body = ENCODED[encoding](request.SerializeToString() if form == "protobuf" else as_json(request))
    headers = {**(PROTOBUF if form == "protobuf" else JSON), "content-encoding": encoding.split()[-1]}
    if "gzip" in encoding:
        headers["content-encoding"] = "gzip"
    pieces = iter([body[:50], body[50:]]) if chunked else body
    answer = service.post(pieces, headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, headers["content-type"])
    assert answer.content == (b"" if form == "protobuf" else b"{}")
    assert duplicates(service, agent) == 2


def test_a_media_type_may_have_parameters(service):
    assert service.post(b"{}", {"content-type": "application/json; charset=utf-8"}).status_code == 200


@pytest.mark.parametrize("headers", [PROTOBUF, JSON])
def test_an_empty_request_is_a_good_one(service, headers):
    assert service.post(b"" if headers is PROTOBUF else b"{}", headers).status_code == 200


def test_a_span_with_too_many_attributes_is_rejected_and_the_rest_counts(service):
    request = turn_request("crowded", calls=4)
    crowded = turn_request("crowded", calls=1, more=60).resource_spans[0].scope_spans[0].spans[0]
    request.resource_spans[0].scope_spans[0].spans.append(crowded)
    answer = ExportTraceServiceResponse.FromString(service.post(request.SerializeToString()).content)
    assert answer.partial_success.rejected_spans == 1
    assert "50 attributes" in answer.partial_success.error_message
    assert duplicates(service, "crowded") == 2
    in_json = service.post(as_json(request), JSON).json()
    assert in_json["partialSuccess"]["rejectedSpans"] == "1"
    assert service.metric("turnwatch_requests_total", signal="traces", outcome="partial") == 2
    assert service.metric("turnwatch_spans_total", outcome="rejected") == 2


def test_a_span_without_an_id_is_rejected(service):
    request = turn_request("nameless", calls=2)
    request.resource_spans[0].scope_spans[0].spans[0].span_id = b""
    answer = ExportTraceServiceResponse.FromString(service.post(request.SerializeToString()).content)
    assert answer.partial_success.rejected_spans == 1


def test_logs_are_taken(service):
    answer = service.post(log_body(), path="/v1/logs")
    assert answer.status_code == 200
    assert not ExportLogsServiceResponse.FromString(answer.content).HasField("partial_success")
    assert service.post(b'{"resourceLogs": []}', JSON, "/v1/logs").json() == {}


MALFORMED = {
    "random bytes": (b"\xff\xfe\xfd" * 20, PROTOBUF),
    "half a request": (turn_body()[:-7], PROTOBUF),
    "no JSON": (b"{", JSON),
    "a JSON list": (b"[]", JSON),
    "spans that are no list": (b'{"resourceSpans": 3}', JSON),
    "spans of another shape": (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": {}}]}]}]}', JSON),
    "a time of more digits than a float can hold": (
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "%032x", "spanId": "%016x", "name": "chat",'
        b' "endTimeUnixNano": "%s"}]}]}]}' % (1, 1, b"9" * 400),
        JSON,
    ),
    "an attribute's name that is no text": (
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "%032x", "spanId": "%016x", "name": "chat",'
        b' "attributes": [{"key": "gen_ai.tool.name", "value": {"stringValue": "x"}},'
        b' {"key": 7, "value": {"stringValue": "x"}}]}]}]}]}' % (1, 1),
        JSON,
    ),
    "deep JSON": (b'{"resourceSpans":' + b"[" * 5_000, JSON),
    "no gzip": (b"not gzip", {**PROTOBUF, "content-encoding": "gzip"}),
    "half a gzip": (gzip.compress(turn_body())[:-10], {**PROTOBUF, "content-encoding": "gzip"}),
    "no deflate": (b"\x00not deflate", {**PROTOBUF, "content-encoding": "deflate"}),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_cannot_be_read_is_400_with_a_status_in_the_requests_form(service, case):
    body, headers = MALFORMED[case]
    answer = service.post(body, headers)
    assert (answer.status_code, answer.headers["content-type"]) == (400, headers["content-type"])
    if headers is JSON:
        status = answer.json()
        assert (status["code"], bool(status["message"])) == (3, True)
    else:
        status = Status.FromString(answer.content)
        assert (status.code, bool(status.message)) == (3, True)


@pytest.mark.parametrize(
    ("scope", "status"), [("my.app", 400), ("opentelemetry.instrumentation.asgi", 200)], ids=["any", "unrelated"]
)
def test_what_stands_in_a_span_is_not_read_where_nothing_of_its_scope_is_of_interest(service, scope, status):
    request = ExportTraceServiceRequest()
    scope_spans = request.resource_spans.add().scope_spans.add()
    scope_spans.scope.name = scope
    scope_spans.spans.add(name="nonsense")
    body = request.SerializeToString().replace(b"*\x08nonsense", b"*\x7fnonsense")
    assert service.post(body).status_code == status
    assert service.metric("turnwatch_internal_errors_total") == 0


def test_what_is_wrong_with_a_body_never_quotes_it(service):
    answer = service.post(b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "secret"}]}]}]}', JSON)
    assert answer.status_code == 400
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"x" * (LARGEST + 1), "identity"),
        (iter([b"x" * LARGEST, b"x"]), "identity"),
        (gzip.compress(bytes(LARGEST + 1)), "gzip"),
        (zlib.compress(bytes(50_000_000)), "deflate"),
    ],
    ids=["content length", "chunked", "gzip", "deflate bomb"],
)
def test_what_is_too_large_is_413(service, body, encoding):
    answer = service.post(body, {**PROTOBUF, "content-encoding": encoding})
    assert answer.status_code == 413
    assert Status.FromString(answer.content).code == 8


@pytest.mark.parametrize("headers", [PROTOBUF, JSON])
def test_a_body_that_would_decode_to_too_many_objects_is_413(service, headers):
    body = b"\x0a\x00" * 20_000 if headers is PROTOBUF else b'{"resourceSpans":[' + b"{}," * 20_000 + b"{}]}"
    assert service.post(body, headers).status_code == 413


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_415(service, content_type):
    assert service.post(turn_body(), {"content-type": content_type}).status_code == 415


def test_an_unknown_encoding_is_415_and_told_what_is_known(service):
    answer = service.post(turn_body(), {**PROTOBUF, "content-encoding": "br"})
    assert answer.status_code == 415
    assert "gzip" in answer.headers["accept-encoding"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_another_method_is_405(service, method):
    answer = requests.request(method, f"{service.http}/v1/traces", timeout=30)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/", "/v1/traces/", "/v1/profiles", "/v1/metrics"])
def test_another_path_is_404(service, path):
    assert service.post(turn_body(), path=path).status_code == 404


def test_the_sender_of_far_too_much_gets_to_see_why(service):
    answer = service.post(bytes(20_000_000))
    assert answer.status_code == 413


def exchange(service, *parts, wait=30.0):
    """Send raw bytes and return everything that is answered until the server closes."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=wait) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


HEAD = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"


def test_a_body_that_does_not_come_is_408(impatient):
    assert exchange(impatient, HEAD + b"content-length: 1000\r\n\r\nabc").startswith(b"HTTP/1.1 408")


def test_headers_that_do_not_end_are_not_waited_for(impatient):
    assert exchange(impatient, HEAD) == b""


def test_requests_that_do_not_wait_for_answers_are_all_answered(service):
    body = turn_body(calls=1)
    request = HEAD + b"content-length: %d\r\n\r\n%s" % (len(body), body)
    last = request.replace(b"host: x", b"host: x\r\nconnection: close")
    assert exchange(service, request * 20 + last).count(b"HTTP/1.1 200 OK") == 21


def test_a_trailer_is_no_header(service):
    body = turn_body(calls=1)
    chunked = b"%x\r\n%s\r\n0\r\ncontent-encoding: gzip\r\n\r\n" % (len(body), body)
    answer = exchange(service, HEAD + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n" + chunked)
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", [b"/healthz", b"/nowhere", b"/v1/traces"])
def test_nobody_keeps_a_connection_by_a_body_that_is_not_read(service, path):
    answer = exchange(service, b"GET " + path + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n", b"abc")
    assert answer.startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize(("path", "pause"), [("/healthz", 0), ("/nowhere", 0), ("/v1/traces", 0), ("/v1/traces", 0.6)])
def test_whoever_sends_on_after_the_answer_is_not_cut_off(service, path, pause):
    head = f"GET {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65536)
        for _ in range(5):
            time.sleep(pause)
            connection.sendall(bytes(40_000))
        while more := connection.recv(65536):
            answer += more
    assert answer.startswith(b"HTTP/1.1 ")
    assert b"connection: close" in answer


@pytest.mark.parametrize("path", ["/healthz", "/nowhere"])
def test_a_request_without_a_body_leaves_its_connection_open(service, path):
    with requests.Session() as session:
        for _ in range(2):
            answer = session.get(f"{service.http}{path}", data=b"", timeout=30)
            assert "connection" not in answer.headers


def test_a_huge_content_length_is_refused_before_the_body_comes(service):
    answer = exchange(service, HEAD + b"content-length: 1000000000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_client_that_leaves_in_the_middle_is_counted(service):
    before = service.metric("turnwatch_requests_total", outcome="disconnected")
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(HEAD + b"content-length: 1000\r\n\r\nabc")
    assert eventually(lambda: service.metric("turnwatch_requests_total", outcome="disconnected") > before)


def test_a_good_request_follows_a_malformed_one_on_the_same_connection(service):
    with requests.Session() as session:
        assert session.post(f"{service.http}/v1/traces", data=b"\xff", headers=PROTOBUF, timeout=30).status_code == 400
        assert session.post(f"{service.http}/v1/traces", data=b"", headers=PROTOBUF, timeout=30).status_code == 200


def test_health(service):
    for base in (service.http, service.metrics_at):
        assert requests.get(f"{base}/healthz", timeout=30).text == "ok\n"
        assert requests.get(f"{base}/readyz", timeout=30).text == "ready\n"


def test_metrics_are_served_in_both_formats(service):
    plain = requests.get(f"{service.metrics_at}/metrics", timeout=30)
    assert plain.headers["content-type"].startswith("text/plain")
    wanted = {"accept": "application/openmetrics-text; version=1.0.0"}
    openmetrics = requests.get(f"{service.metrics_at}/metrics", headers=wanted, timeout=30)
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.text.endswith("# EOF\n")


def test_nothing_was_logged_that_a_client_sent(service):
    assert service.post(as_json(turn_request("quiet"))[:-30], JSON).status_code == 400
    assert "C-0" not in service.errors.read_text()


def test_a_stuck_turn_is_a_line_on_stderr_that_names_its_trace(tmp_path):
    # Its own service: how many lines there are in a minute is bounded, and the other tests make some.
    with serving(tmp_path) as service:
        assert service.post(turn_body("stuck in a line", calls=8)).status_code == 200

        def said():
            lines = service.errors.read_text().splitlines()
            return [line for line in lines if 'agent="stuck in a line"' in line]

        assert eventually(lambda: len(said()) == 2)
        warned, stuck = said()
        assert warned.startswith("turnwatch: verdict=warn kind=")
        assert re.match(
            r'turnwatch: verdict=stuck kind=stale_repeat agent="stuck in a line" tool=search_orders '
            r"turn=([0-9a-f]{32})-[0-9a-f]{16} trace=\1 reason=",
            stuck,
        )

"""Many bad clients at once against a real process with its default limits, and a good client beside them.

Every attack ends by itself after a fixed number of requests.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import random
import socket
import threading
import time
import zlib

import grpc
import pytest
import requests
from tests.ports import kept_port
from tests.service.bodies import as_json, orphans_body, turn_body, turn_request
from tests.service.running import JSON, PROTOBUF, eventually, serving

LARGEST = 16_777_216
MOST_MEMORY_MB = 300
CONNECTIONS = 200
RETRYABLE = {429, 503}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """With gRPC, and a forward queue that nobody empties: both take memory as well."""
    folder = tmp_path_factory.mktemp("service")
    limits = {"body_timeout_s": 4, "header_timeout_s": 4, "drain_timeout_s": 0}
    with kept_port() as nobodys:
        forward = ("--forward", f"http://127.0.0.1:{nobodys}")
        with serving(folder, *forward, grpc=True, traced=False, **limits) as running:
            yield running


class GoodClient:
    """Sends one turn after another, as an exporter would: what is refused for now is sent again."""

    def __init__(self, service, agent):
        self._service, self.agent = service, agent
        self.sent, self.answers, self.seconds = 0, [], []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        with requests.Session() as session:
            while not self._stop.is_set():
                body = turn_body(self.agent)
                while True:
                    began = time.perf_counter()
                    url = f"{self._service.http}/v1/traces"
                    status = session.post(url, data=body, headers=PROTOBUF, timeout=60).status_code
                    self.seconds.append(time.perf_counter() - began)
                    if status not in RETRYABLE:
                        break
                self.answers.append(status)
                self.sent += 1
                time.sleep(0.02)


@pytest.fixture
def good(service, request):
    """A good client beside every attack; each of its turns must have been counted, exactly once."""
    with GoodClient(service, request.node.name) as client:
        eventually(lambda: client.sent > 3)
        yield client
        sent = client.sent
        eventually(lambda: client.sent > sent + 3, seconds=60)
    assert set(client.answers) == {200}
    assert service.metric("agent_tool_calls_total", agent=client.agent) == 3 * client.sent
    assert service.process.poll() is None
    assert service.resident_mb() < MOST_MEMORY_MB
    assert service.metric("turnwatch_internal_errors_total") == 0


def many(service, bodies, workers=8):
    """Send every (body, headers) and return the statuses."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda sent: service.post(*sent).status_code, bodies))


def test_truncated_and_random_protobuf(service, good):
    chance = random.Random(5)
    whole = turn_body(text="a longer note " * 20)
    cut = [(whole[: chance.randrange(1, len(whole))], PROTOBUF) for _ in range(100)]
    noise = [(chance.randbytes(chance.randrange(1, 5000)), PROTOBUF) for _ in range(100)]
    flipped = []
    for _ in range(100):
        body = bytearray(whole)
        for _ in range(5):
            body[chance.randrange(len(body))] = chance.randrange(256)
        flipped.append((bytes(body), PROTOBUF))
    assert set(many(service, cut)) <= {400}
    assert set(many(service, noise + flipped)) <= {200, 400}


def test_gzip_bombs(service, good):
    bomb = gzip.compress(bytes(60_000_000), compresslevel=9)
    within_bomb = gzip.compress(bomb)
    deflated = zlib.compress(bytes(60_000_000), 9)
    assert len(bomb) < 100_000
    sent = [(bomb, {**PROTOBUF, "content-encoding": "gzip"}), (deflated, {**JSON, "content-encoding": "deflate"})] * 12
    assert set(many(service, sent)) == {413}
    assert service.post(within_bomb, {**PROTOBUF, "content-encoding": "gzip"}).status_code == 400


def test_gzip_of_a_million_empty_members(service, good):
    """At the end of each, what follows it is copied."""
    empty = gzip.compress(b"")
    answer = service.post(empty * (LARGEST // len(empty)), {**PROTOBUF, "content-encoding": "gzip"})
    assert answer.status_code == 200


def padded(size, inner):
    """A traces request round these bytes of a scope's spans, repeated to about this size."""
    content = inner * (size // len(inner))
    for tag in (b"\x12", b"\x0a"):
        content = tag + varint(len(content)) + content
    return content


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def test_small_bodies_that_would_decode_to_large_ones(service, good):
    spans = padded(LARGEST - 100, b"\x12\x00")
    with_fields = padded(LARGEST - 100, b"\x12\x02\x08\x00")
    attributes = padded(LARGEST - 100, b"\x12\xa0\x8d\x06" + b"\x4a\x00" * 50_000)
    resources = b"\x0a\x00" * (LARGEST // 2 - 10)
    objects = b'{"resourceSpans":[' + b"{}," * 5_000_000 + b"{}]}"
    numbers = b'{"resourceSpans":[' + b"1," * 8_000_000 + b"1]}"
    assert {len(body) <= LARGEST for body in (spans, with_fields, attributes, resources, objects, numbers)} == {True}
    sent = [(body, PROTOBUF) for body in (spans, with_fields, attributes, resources)]
    sent += [(body, JSON) for body in (objects, numbers)]
    for one, status in zip(sent, many(service, sent, workers=3), strict=True):
        assert 413 in {status, *([service.post(*one).status_code] if status == 503 else [])}


def test_the_largest_good_request_stays_within_memory(service, good):
    text = turn_request("large", calls=8, text="word " * (LARGEST // 50))
    assert LARGEST // 2 < text.ByteSize() < LARGEST
    protobuf, json = text.SerializeToString(), as_json(text)
    answers = many(service, [(protobuf, PROTOBUF), (json, JSON)] * 4, workers=8)
    assert set(answers) <= {200, *RETRYABLE}
    assert service.post(protobuf).status_code == 200


def test_deep_and_wide_attributes(service, good):
    deep_json = b'{"resourceSpans":' + b"[" * 200_000
    nested = b'{"arrayValue":{"values":[' * 300 + b'{"intValue":"1"}' + b"]}}" * 300
    one = as_json(turn_request("deep", calls=1)).decode()
    in_a_span = one.replace('{"stringValue": "no orders"}', nested.decode()).encode()
    assert nested in in_a_span
    wide = turn_body("wide", calls=2, more=10_000)
    assert service.post(deep_json, JSON).status_code == 400
    assert service.post(in_a_span, JSON).status_code in {200, 400}
    answer = service.post(wide)
    assert (answer.status_code, b"attributes on 2 of the spans" in answer.content) == (200, True)
    assert service.metric("agent_tool_calls_total", agent="wide") == 0


def test_calls_that_wait_for_spans_that_never_come(service, good):
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "t"}
    model = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m"}
    long = "a " * 500_000
    bodies = [
        orphans_body(10, **tool, gen_ai__tool__call__arguments=long),
        orphans_body(10, **model, gen_ai__output__messages=long),
        orphans_body(7, **tool, gen_ai__tool__call__id=long, gen_ai__conversation__id=long),
    ]
    assert set(many(service, [(body, PROTOBUF) for body in bodies for _ in range(20)], workers=3)) <= {200, *RETRYABLE}


def test_names_that_are_no_names(service, good):
    name = "n" * 1_000_000
    bodies = [turn_body(f"{number} {name}", calls=2) for number in range(20)]
    assert set(many(service, [(body, PROTOBUF) for body in bodies], workers=3)) <= {200, *RETRYABLE}
    assert len(requests.get(f"{service.metrics_at}/metrics", timeout=30).content) < 5_000_000


def test_wrong_content_types(service, good):
    types = ["text/plain", "application/xml", "application/grpc", "multipart/form-data", "", "a/b/c;;;=", "*/*"]
    sent = [(turn_body(), {"content-type": content_type}) for content_type in types * 20]
    assert set(many(service, sent)) == {415}
    assert service.post(turn_body(), JSON).status_code == 400
    assert service.post(as_json(turn_request()), PROTOBUF).status_code == 400


HEAD = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"


def opened(service, count, sent):
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
        connection.sendall(sent)
        connections.append(connection)
    return connections


def first_line(connection):
    try:
        return connection.recv(12)
    except ConnectionResetError:
        return b""


def test_a_gigabyte_announced_on_many_connections(service, good):
    attackers = opened(service, CONNECTIONS, HEAD + b"content-length: 1000000000\r\n\r\nabc")
    assert {first_line(attacker) for attacker in attackers} == {b"HTTP/1.1 413"}
    for attacker in attackers:
        attacker.close()


def test_a_gigabyte_sent_in_chunks(service, good):
    answer = service.post(iter([bytes(1_000_000)] * 40))
    assert answer.status_code == 413


def test_slow_bodies_on_many_connections(service, good):
    attackers = opened(service, CONNECTIONS, HEAD + b"content-length: 10000000\r\n\r\nabc")
    for attacker in attackers:
        attacker.sendall(b"x")
    good_before = good.sent
    eventually(lambda: good.sent > good_before + 20, seconds=60)
    assert {first_line(attacker) for attacker in attackers} == {b"HTTP/1.1 408"}
    for attacker in attackers:
        attacker.close()


def test_slow_headers_on_many_connections(service, good):
    attackers = opened(service, CONNECTIONS, HEAD)
    good_before = good.sent
    eventually(lambda: good.sent > good_before + 20, seconds=60)
    assert {first_line(attacker) for attacker in attackers} == {b""}
    for attacker in attackers:
        attacker.close()


def test_bodies_that_stop_after_a_megabyte_on_many_connections(service, good):
    """Two hundred megabytes in all if they were kept: the oldest must make room, and good clients go on."""
    attackers = opened(service, CONNECTIONS, HEAD + b"content-length: 10000000\r\n\r\n")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda attacker: send_what_is_taken(attacker, bytes(1_000_000)), attackers))
    good_before = good.sent
    eventually(lambda: good.sent > good_before + 20, seconds=60)
    lines = {first_line(attacker) for attacker in attackers}
    assert lines <= {b"HTTP/1.1 408", b"HTTP/1.1 503", b""}
    assert b"HTTP/1.1 503" in lines
    for attacker in attackers:
        attacker.close()


def send_what_is_taken(connection, content):
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(content)


@pytest.mark.parametrize(
    "begun",
    [b"x-filler: ", b"transfer-encoding: chunked\r\n\r\n0\r\nx-filler: ", b"transfer-encoding: chunked\r\n\r\n1;x="],
    ids=["header", "trailer", "chunk extension"],
)
def test_headers_without_an_end(service, good, begun):
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        send_what_is_taken(connection, HEAD + begun + b"a" * 50_000_000)
        assert first_line(connection) in {b"HTTP/1.1 400", b""}


def test_many_headers_that_are_no_end_of_them(service, good):
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        send_what_is_taken(connection, HEAD + b"x: y\r\n" * 5_000_000)
        assert first_line(connection) in {b"HTTP/1.1 400", b""}


def test_many_small_requests_at_once_on_one_connection(service, good):
    attackers = opened(service, CONNECTIONS, b"")
    for attacker in attackers:
        send_what_is_taken(attacker, b"GET / HTTP/1.1\r\n\r\n" * 10_000)
    assert {first_line(attacker) for attacker in attackers} <= {b"HTTP/1.1 400", b"HTTP/1.1 404", b"HTTP/1.1 503", b""}
    for attacker in attackers:
        attacker.close()


def test_blank_lines_instead_of_requests(service, good):
    attackers = opened(service, 20, b"\r\n")
    assert {first_line(attacker) for attacker in attackers} == {b""}
    for attacker in attackers:
        attacker.close()


def test_two_hundred_clients_at_once(service, good):
    def client(number):
        with requests.Session() as session:
            url = f"{service.http}/v1/traces"
            return [
                session.post(url, data=turn_body("crowd"), headers=PROTOBUF, timeout=60).status_code for _ in range(5)
            ]

    before = service.metric("agent_tool_calls_total", agent="crowd")
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        answers = [status for found in pool.map(client, range(CONNECTIONS)) for status in found]
    assert set(answers) <= {200, *RETRYABLE}
    taken = answers.count(200)
    assert taken > CONNECTIONS
    assert service.metric("agent_tool_calls_total", agent="crowd") - before == 3 * taken


EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def status_over_grpc(export, *arguments, **more):
    try:
        export(*arguments, timeout=60, **more)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_calls_over_grpc_that_send_nothing(service, good):
    go_on = threading.Event()

    class Waiting:
        def __iter__(self):
            return self

        def __next__(self):
            go_on.wait(60)
            raise StopIteration

    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(grpc.insecure_channel(service.grpc, _own_connection())) for _ in range(20)]
        silent = [channel.stream_unary(EXPORT).future(Waiting(), timeout=60) for channel in channels for _ in range(3)]
        good_channel = stack.enter_context(grpc.insecure_channel(service.grpc, _own_connection()))
        export = good_channel.unary_unary(EXPORT)
        answers = [status_over_grpc(export, turn_body("over grpc")) for _ in range(10)]
        codes = {call.exception().code() for call in silent}
        go_on.set()
    assert set(answers) == {grpc.StatusCode.OK}
    assert codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


def _own_connection():
    return [("grpc.use_local_subchannel_pool", 1)]


def test_large_messages_and_bombs_over_grpc(service, good):
    bomb, large = bytes(60_000_000), bytes(5_000_000)
    full = turn_body("full", calls=4, text="word " * 190_000)
    assert 3_500_000 < len(full) < 4_194_304

    def client(number):
        body, compression = [
            (bomb, grpc.Compression.Gzip),
            (large, grpc.Compression.NoCompression),
            (full, grpc.Compression.NoCompression),
            (b"\xff" * 1000, grpc.Compression.NoCompression),
        ][number % 4]
        with grpc.insecure_channel(service.grpc, _own_connection()) as channel:
            return status_over_grpc(channel.unary_unary(EXPORT), body, compression=compression)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        codes = list(pool.map(client, range(40)))
    assert set(codes[0::4] + codes[1::4]) == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert set(codes[2::4]) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert set(codes[3::4]) <= {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNAVAILABLE}


def test_more_names_than_labels_may_have(service):
    for start in range(0, 300, 100):
        many(service, [(turn_body(f"made up {start + number}"), PROTOBUF) for number in range(100)])
    assert service.metric("turnwatch_label_values_folded_total", label="agent") > 0


def test_everything_was_bounded_and_counted(service):
    assert service.metric("turnwatch_forward_dropped_total", reason="queue_full") > 0
    assert service.metric("turnwatch_requests_total", outcome="malformed") > 0
    said = service.errors.read_text().splitlines()
    assert sum("verdict=" not in line for line in said) < 20

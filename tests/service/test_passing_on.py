"""--forward: everything, unchanged, and every loss counted."""

import errno
import gzip
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import grpc
import pytest
import requests
from tests.ports import kept_port
from tests.service.bodies import as_json, log_body, turn_body, turn_request
from tests.service.running import JSON, PROTOBUF, downstream, eventually, serving


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    limits = {"forward_headers": '{"x-api-key": "k"}', "token": "t"}
    with downstream() as receiver, serving(folder, "--forward", receiver.url + "/", grpc=True, **limits) as service:
        yield Passing(service, receiver)


@pytest.fixture
def passing(running):
    return running.begun()


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    folder = tmp_path_factory.mktemp("impatient")
    limits = {"forward_give_up_s": 2, "token": "t"}
    with downstream() as receiver, serving(folder, "--forward", receiver.url, **limits) as service:
        yield Passing(service, receiver)


@pytest.fixture
def giving_up(impatient):
    """The same, but what is two seconds old is given up."""
    return impatient.begun()


@pytest.fixture
def receiver():
    with downstream() as running:
        yield running


class Passing:
    """A service, the receiver behind it, and what was counted since the test began."""

    def __init__(self, service, receiver):
        self.service, self.receiver = service, receiver

    def begun(self):
        """Itself, with nothing counted and nothing received so far."""
        self.receiver.forget()
        self._before = self.service.metrics()
        return self

    def post(self, body, headers=PROTOBUF, path="/v1/traces"):
        return self.service.post(body, {**headers, "authorization": "Bearer t"}, path).status_code

    def _since(self, name, labels):
        wanted = set(labels.items())
        return sum(
            value - self._before.get(key, 0)
            for key, value in self.service.metrics().items()
            if key[0] == name and wanted <= key[1]
        )

    def dropped(self, **labels):
        return self._since("turnwatch_forward_dropped_total", labels)

    def forwarded(self, **labels):
        return self._since("turnwatch_forwarded_total", labels)

    def retries(self):
        return self._since("turnwatch_forward_retries_total", {})


def dropped(service, **labels):
    return service.metric("turnwatch_forward_dropped_total", **labels)


def forwarded(service, **labels):
    return service.metric("turnwatch_forwarded_total", **labels)


def test_bytes_and_headers_arrive_as_they_were_sent(passing):
    sent = [
        ("/v1/traces", turn_body(), PROTOBUF),
        ("/v1/traces", gzip.compress(turn_body()), {**PROTOBUF, "content-encoding": "gzip"}),
        ("/v1/traces", as_json(turn_request()), {"content-type": "application/json; charset=utf-8"}),
        ("/v1/logs", log_body(), PROTOBUF),
        ("/v1/metrics", b"read by nobody here", PROTOBUF),
    ]
    for path, body, headers in sent:
        assert passing.post(body, headers, path) == 200
    eventually(lambda: len(passing.receiver.got) == len(sent))
    arrived = {(path, body): headers for path, headers, body in passing.receiver.got}
    for path, body, headers in sent:
        got = arrived[path, body]
        assert {name: got[name] for name in headers} == headers
        assert got.get("content-encoding") == headers.get("content-encoding")
        assert got["x-api-key"] == "k"
        assert "authorization" not in got
    eventually(lambda: passing.forwarded() == 4 * 3 + 2 + 1)
    assert passing.dropped() == 0


def test_what_comes_over_grpc_is_passed_on_over_http(passing):
    body = turn_body()
    with grpc.insecure_channel(passing.service.grpc) as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        export(body, metadata=(("authorization", "Bearer t"),), timeout=30)
    eventually(lambda: passing.receiver.bodies == [body])
    assert passing.receiver.got[0][1]["content-type"] == "application/x-protobuf"


def test_what_cannot_be_read_is_not_passed_on(passing):
    assert passing.post(b"\xff") == 400
    assert passing.post(turn_body()) == 200
    eventually(lambda: passing.forwarded() == 4)
    assert len(passing.receiver.got) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_receiver_that_is_busy_is_asked_again(passing, status):
    passing.receiver.answers = [(status, {}), (status, {"retry-after": "0"}), (status, {"retry-after": "nonsense"})]
    passing.post(turn_body())
    eventually(lambda: passing.forwarded() == 4)
    assert (passing.receiver.refused, passing.retries(), passing.dropped()) == (3, 3, 0)


def test_retry_after_is_waited_for_by_every_sender(passing):
    passing.receiver.answers = [(503, {"retry-after": "2"})]
    before = time.monotonic()
    passing.post(turn_body())
    eventually(lambda: passing.receiver.refused == 1)
    passing.post(turn_body())
    eventually(lambda: len(passing.receiver.got) == 2)
    assert min(passing.receiver.came) - before > 2


@pytest.mark.parametrize("asked_for", ["86400", "9" * 400], ids=["a day", "for ever"])
def test_a_receiver_that_asks_for_very_long_is_asked_again_once_all_that_waited_is_given_up(giving_up, asked_for):
    giving_up.receiver.answers = [(503, {"retry-after": asked_for})]
    giving_up.post(turn_body())
    eventually(lambda: giving_up.dropped(reason="expired") == 4)
    giving_up.post(turn_body())
    eventually(lambda: giving_up.forwarded() == 4)


@pytest.mark.parametrize("status", [400, 401, 404, 413, 301])
def test_a_request_that_is_refused_is_dropped_and_counted(passing, status):
    passing.receiver.answers = [(status, {})]
    passing.post(turn_body())
    eventually(lambda: passing.dropped(signal="traces", reason="rejected") == 4)
    passing.post(turn_body())
    eventually(lambda: passing.forwarded() == 4)
    assert "so the request was dropped" in passing.service.errors.read_text()


def test_a_password_in_the_receivers_address_is_sent_and_not_logged(tmp_path, receiver):
    receiver.answers = [(400, {}), (503, {})]
    with serving(tmp_path, "--forward", receiver.url.replace("//", "//me:s3cr@t@")) as service:
        for _ in range(2):
            service.post(turn_body())
        eventually(lambda: receiver.got)
        said = service.errors.read_text()
    assert receiver.got[0][1]["authorization"].startswith("Basic ")
    assert f"{receiver.url} answered 400" in said
    assert f"{receiver.url} cannot take requests now" in said
    assert "s3cr" not in said


def test_what_is_too_old_is_given_up(giving_up):
    giving_up.receiver.answers, giving_up.receiver.keeps_refusing = [(503, {})], True
    giving_up.post(turn_body())
    eventually(lambda: giving_up.dropped(reason="expired") == 4)


def test_a_receiver_that_is_gone_and_comes_back_misses_only_what_was_counted(tmp_path):
    sent = 60
    with (
        kept_port() as port,
        serving(tmp_path, "--forward", f"http://127.0.0.1:{port}", forward_queue_bytes=20_000) as service,
    ):
        with downstream(port):
            assert service.post(turn_body()).status_code == 200
            eventually(lambda: forwarded(service) == 4)
        for number in range(sent):
            assert service.post(turn_body(f"agent {number}")).status_code == 200
        eventually(lambda: service.metric("turnwatch_forward_retries_total") > 0)
        assert 0.9 < service.metric("turnwatch_forward_queue_ratio") <= 1
        with downstream(port) as back:
            eventually(lambda: forwarded(service) + dropped(service) == 4 * (1 + sent))
            lost = dropped(service, reason="queue_full")
            assert 0 < lost < 4 * sent
            assert 4 * len(back.got) == 4 * sent - lost == forwarded(service) - 4
        assert service.metric("turnwatch_forward_queue_ratio") == 0
        assert service.metric("agent_tool_calls_total") == 3 * (1 + sent)


def test_sigterm_sends_what_waits(tmp_path, receiver):
    receiver.delay = 0.2
    with serving(tmp_path, "--forward", receiver.url) as service:
        for _ in range(20):
            service.post(turn_body())
        assert service.stop() == 0
    assert len(receiver.got) == 20


def test_draining_is_seen_at_readyz_and_ends_in_time(tmp_path, receiver):
    receiver.answers, receiver.keeps_refusing = [(503, {})], True
    with serving(tmp_path, "--forward", receiver.url, drain_timeout_s=5) as service:
        service.post(turn_body())
        eventually(lambda: receiver.refused)
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: requests.get(f"{service.metrics_at}/readyz", timeout=30).status_code == 503)
        with pytest.raises(requests.ConnectionError):
            eventually(lambda: service.post(turn_body()).status_code == 0)
        assert service.process.wait(20) == 0


def test_a_second_signal_ends_the_draining(tmp_path, receiver):
    receiver.answers, receiver.keeps_refusing = [(503, {})], True
    with serving(tmp_path, "--forward", receiver.url, drain_timeout_s=600) as service:
        service.post(turn_body())
        eventually(lambda: receiver.refused)
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: requests.get(f"{service.metrics_at}/readyz", timeout=30).status_code == 503)
        assert service.stop(signal.SIGINT) == 0


def test_a_request_under_way_is_finished_before_the_end(tmp_path, receiver):
    body = turn_body()
    with serving(tmp_path, "--forward", receiver.url) as service:
        begun, go_on = threading.Event(), threading.Event()

        def slowly():
            yield body[:10]
            begun.set()
            go_on.wait(60)
            yield body[10:]

        answers = []
        sender = threading.Thread(target=lambda: answers.append(service.post(slowly())))
        sender.start()
        begun.wait(60)
        # What is connected later is answered later: by now the service reads the other's body.
        assert requests.get(f"{service.http}/healthz", timeout=30).ok
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: requests.get(f"{service.metrics_at}/readyz", timeout=30).status_code == 503)
        go_on.set()
        sender.join()
        assert answers[0].status_code == 200
        assert service.process.wait(20) == 0
    assert receiver.bodies == [body]


def test_what_a_kill_loses_is_counted_by_the_next_process(tmp_path, receiver):
    """Killed under load behind a receiver that hangs: sent = arrived + counted as lost, give or take the last few."""
    taken, stop = [0], threading.Event()

    def load(service):
        with requests.Session() as session:
            while not stop.is_set():
                try:
                    answer = session.post(f"{service.http}/v1/traces", data=turn_body(), headers=PROTOBUF, timeout=60)
                except requests.RequestException:
                    return
                taken[0] += answer.status_code == 200

    # No request is tried a second time, so that none arrives twice.
    with serving(tmp_path, "--forward", receiver.url, forward_timeout_s=120) as service:
        loading = threading.Thread(target=load, args=(service,))
        loading.start()
        eventually(lambda: len(receiver.got) > 50, seconds=60)
        receiver.may_answer.clear()
        before = taken[0]
        eventually(lambda: taken[0] > before + 50, seconds=60)
        service.process.kill()
        service.process.wait(10)
        stop.set()
        loading.join()
    receiver.may_answer.set()
    arrived = len(receiver.got)
    with serving(tmp_path, "--forward", receiver.url) as service:
        lost = dropped(service, signal="traces", reason="killed") / 4
        assert lost > 40
        # Up to four were with the receiver when the kill came, and one had not been answered yet.
        assert taken[0] - arrived - 1 <= lost <= taken[0] - arrived + 5
        assert service.post(turn_body()).status_code == 200
        eventually(lambda: forwarded(service) == 4)
    with serving(tmp_path, "--forward", receiver.url) as service:
        assert dropped(service) == 0


ON_A_FULL_DISK = """\
import sys
from pathlib import Path

from turnwatch.service.ledger import Ledger

folder = Path(sys.argv[1])
(folder / "full").write_bytes(bytes(4096))
try:
    Ledger(folder / "forward-4318")
except OSError as error:
    print(error.strerror)
"""


def test_a_full_disk_costs_the_ledger_and_not_the_service(tmp_path):
    mount = f"mount -t tmpfs -o size=4k tmpfs {tmp_path}"
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "sh", "-c", mount], check=False).returncode:
        pytest.skip("no file system of one's own can be had here, so none was filled")
    run = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, "-c", ON_A_FULL_DISK, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.returncode, run.stdout.strip()) == (0, os.strerror(errno.ENOSPC))


def test_without_forwarding_metrics_are_told_where_to_go(tmp_path):
    with serving(tmp_path) as service:
        answer = service.post(b"{}", JSON, "/v1/metrics")
        assert (answer.status_code, "--forward" in answer.json()["message"]) == (404, True)

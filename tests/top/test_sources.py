"""Sources over real HTTP: what they are, what they give, and what goes wrong with them."""

import contextlib
import json
import socket
import threading

import pytest
from tests.ports import kept_port
from tests.top.servers import Agents, until

from turnwatch import http_answer
from turnwatch.top.address import address_of
from turnwatch.top.polling import Polling, look
from turnwatch.top.reading import SourceError
from turnwatch.top.sources import source_of

PAGE = 'agent_open_turns{agent="a"} 1\n'


def source(url, headers=None, **options):
    return source_of(address_of(url, headers or {}), **{"window_seconds": 60, "timeout_seconds": 5, **options})


def vector(*rows):
    result = [{"metric": labels, "value": [0, str(value)]} for labels, value in rows]
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}), {}


def test_an_exporter_with_agents_in_it_is_read(agents):
    agents.loop("support-bot", "search", rounds=3)
    exporter = source(agents.url)
    first = exporter.read()
    assert exporter.kind == "metrics"
    assert first.levels["agent_open_turns"] == {("support-bot",): 1}
    assert first.levels["agent_turn_stale_calls_max"] == {("support-bot", "search"): 3}
    assert first.rates == {}
    assert ("support-bot", "search", "stale_repeat", "warn") in first.begun
    agents.loop("support-bot", "search", rounds=2)
    second = exporter.read()
    assert second.rates["agent_tool_calls_total"][
        "support-bot", "search", "ok"
    ] * second.window_seconds == pytest.approx(2)
    assert second.tallies["agent_spend_usd_total"]["support-bot",] > 0


@pytest.mark.parametrize("ending", ["", "/", "/metrics"])
def test_the_host_of_an_exporter_is_enough(pages, ending):
    pages.answer = lambda path: (200, PAGE, {}) if path == "/metrics" else (404, "no", {})
    assert source(pages.url + ending).read().levels["agent_open_turns"] == {("a",): 1}


def test_a_page_elsewhere_is_read_with_its_query(pages):
    pages.answer = lambda path: (200, PAGE, {}) if path == "/internal/stats?format=prometheus" else (404, "no", {})
    assert source(f"{pages.url}/internal/stats?format=prometheus").read().levels["agent_open_turns"] == {("a",): 1}


def test_what_answers_queries_is_a_prometheus_wherever_its_api_is(pages):
    def answer(path):
        if path.startswith("/select/0/prometheus/api/v1/query"):
            return vector(
                ({"turnwatch_top": "agent_open_turns", "agent": "a"}, 4), ({"turnwatch_top": "targets up"}, 2)
            )
        return 404, "no", {}

    pages.answer = answer
    prometheus = source(f"{pages.url}/select/0/prometheus")
    reading = prometheus.read()
    assert prometheus.kind == "prometheus"
    assert reading.levels["agent_open_turns"] == {("a",): 4}
    assert reading.targets_up == 2


def test_series_that_were_pushed_into_a_prometheus_have_no_target(pages):
    pages.answer = lambda path: vector(({"turnwatch_top": "agent_open_turns", "agent": "a"}, 1))
    reading = source(pages.url, forced="prometheus").read()
    assert (reading.targets_up, reading.targets_down) == (1, 0)


def test_an_agent_that_a_new_process_does_not_have_is_no_longer_there(pages):
    pages.answer = lambda path: (200, PAGE + 'agent_tool_calls_total{agent="b",tool="t",outcome="ok"} 4\n', {})
    exporter = source(f"{pages.url}/metrics")
    exporter.read()
    assert ("b", "t", "ok") in exporter.read().rates["agent_tool_calls_total"]
    pages.answer = lambda path: (200, PAGE, {})
    assert exporter.read().rates["agent_tool_calls_total"] == {}


def test_the_kind_can_be_forced(pages):
    pages.answer = lambda path: vector(({"turnwatch_top": "targets up"}, 1)) if "query" in path else (200, PAGE, {})
    assert source(f"{pages.url}/metrics", forced="prometheus").kind is None
    forced = source(pages.url, forced="metrics")
    forced.read()
    assert forced.kind == "metrics"
    assert [path for path, _, _ in pages.asked] == ["/metrics"]


def test_the_selector_is_in_the_query(pages):
    pages.answer = lambda path: vector(({"turnwatch_top": "targets up"}, 1))
    source(pages.url, forced="prometheus", selector='job="agents"').read()
    (_, _, body) = pages.asked[-1]
    assert "agent_open_turns%7Bjob%3D%22agents%22%7D" in body


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, "<html>hello</html>", {}), "answers, but has no turnwatch metrics"),
        ((200, "agent_open_turns{", {}), "not Prometheus's text format"),
        ((404, "no", {}), "HTTP status 404"),
        ((401, "no", {}), "HTTP status 401; --header sends a token"),
        ((500, PAGE, {}), "HTTP status 500"),
    ],
)
def test_what_is_wrong_with_a_page_is_one_line_that_names_it(pages, answer, said):
    pages.answer = lambda path: answer
    with pytest.raises(SourceError) as refused:
        source(f"{pages.url}/metrics").read()
    assert str(refused.value) == f"{pages.url}/metrics: {said}"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (vector(), "answers, but this Prometheus has no turnwatch metrics"),
        ((400, '{"status": "error", "error": "parse\\nerror"}', {}), "parse error"),
        ((502, "<html>", {}), "HTTP status 502"),
        ((200, "<html>", {}), "not an answer of Prometheus's HTTP API"),
        ((200, '{"status": "success", "data": null}', {}), "not an answer of Prometheus's HTTP API"),
        ((200, "[]", {}), "not an answer of Prometheus's HTTP API"),
    ],
)
def test_what_is_wrong_with_a_prometheus_is_one_line_that_names_it(pages, answer, said):
    pages.answer = lambda path: answer
    with pytest.raises(SourceError) as refused:
        source(pages.url, forced="prometheus").read()
    assert str(refused.value) == f"{pages.url}: {said}"


def test_nobody_there_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert look(source(url)) == (None, f"{url}: Connection refused")


def test_headers_are_sent_and_do_not_follow_a_redirect(pages):
    pages.answer = lambda path: (200, PAGE, {}) if path == "/other" else (302, "", {"Location": "/other"})
    source(f"{pages.url}/metrics", {"Authorization": "Bearer secret"}).read()
    sent = [(path, headers.get("Authorization")) for path, headers, _ in pages.asked]
    assert sent == [("/metrics", "Bearer secret"), ("/other", None)]


def test_a_source_that_does_not_answer_in_time_is_given_up(pages):
    enough = threading.Event()
    pages.answer = lambda path: (enough.wait(30), (200, PAGE, {}))[1]
    with pytest.raises(SourceError, match=r"no answer within 0\.2 s"):
        source(f"{pages.url}/metrics", timeout_seconds=0.2).read()
    enough.set()


def test_a_source_that_answers_a_byte_at_a_time_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as server:
        enough = threading.Event()

        def drip():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                with contextlib.suppress(OSError):  # whoever asked has gone
                    while not enough.wait(0.02):
                        connection.send(b"#")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(SourceError, match=r"no answer within 0\.3 s"):
                source(f"http://127.0.0.1:{server.getsockname()[1]}/metrics", timeout_seconds=0.3).read()
        finally:
            enough.set()
            thread.join()


def test_what_is_no_http_at_all_is_one_line_that_a_terminal_can_show():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"\x1b[31m\x07" + b"x" * 5_000 + b"\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SourceError) as refused:
            source(f"http://127.0.0.1:{server.getsockname()[1]}/metrics").read()
        thread.join()
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


def test_an_endless_answer_is_given_up(pages, monkeypatch):
    monkeypatch.setattr(http_answer, "MAX_BODY_BYTES", 1 << 20)
    pages.answer = lambda path: (200, "# x\n" * (1 << 19), {})
    with pytest.raises(SourceError, match="more than 1 MB"):
        source(f"{pages.url}/metrics").read()


def test_an_exporter_that_restarts_on_the_same_port_goes_on_where_it_was():
    with kept_port() as port:
        first = Agents(port)
        first.loop("a", "search", rounds=5)
        exporter = source(first.url)
        exporter.read()
        first.loop("a", "search", rounds=1)
        before = exporter.read().tallies["agent_spend_usd_total"]["a",]
        first.close()
        assert look(exporter)[0] is None
        again = Agents(port)
        again.loop("a", "search", rounds=2)
        reading = exporter.read()
        again.close()
    assert reading.tallies["agent_spend_usd_total"]["a",] == pytest.approx(3 * before)
    assert reading.restarts == 1


def test_a_slow_source_holds_up_no_other(pages, agents):
    enough = threading.Event()
    pages.answer = lambda path: (enough.wait(30), (200, PAGE, {}))[1]
    agents.loop("a", "search")
    rung = threading.Event()
    polling = Polling([source(f"{pages.url}/metrics", timeout_seconds=30), source(agents.url)], 0.05, rung.set)
    polling.start()
    try:
        until(lambda: polling.states[1].looks > 3, "the quick source to be read")
        assert polling.states[0].looks == 0
        assert rung.is_set()
        enough.set()
        until(lambda: polling.states[0].is_up, "the slow source to be read")
    finally:
        polling.stop()


def test_a_fault_of_top_itself_ends_the_watching_of_no_other_source():
    class Odd:
        address, kind = "http://odd", None

        def read(self):
            raise ZeroDivisionError

    assert look(Odd()) == (None, "http://odd: ZeroDivisionError")

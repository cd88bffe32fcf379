from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import turnwatch as tw
from turnwatch.guards.from_settings import pager_of
from turnwatch.guards.pager import RUNBOOKS
from turnwatch.settings import Page as PageSettings

PAGE = tw.Page("support-bot", "search", "stale_repeat", "stuck", "search gave the same result.", "c-17", "t-1")


class Receiver:
    """An HTTP server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, object]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append((self.path, json.loads(body)))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_an_alert_goes_to_alertmanagers_api(receiver):
    pager = tw.Pager(tw.alertmanager(f"{receiver.url}/", {"cluster": "eu"}))
    pager(PAGE)
    assert pager.flush()
    ((path, (alert,)),) = receiver.posts
    assert path == "/api/v2/alerts"
    assert alert["labels"] == {
        "alertname": "AgentLoopDetected",
        "severity": "critical",
        "agent": "support-bot",
        "tool": "search",
        "kind": "stale_repeat",
        "source": "guard",
        "cluster": "eu",
    }
    assert alert["annotations"]["description"] == "search gave the same result."
    assert alert["annotations"]["conversation_id"] == "c-17"
    assert alert["startsAt"] < alert["endsAt"]


LINKS = {"runbooks": "https://wiki.test/runbooks/", "dashboards": "https://grafana.test/d/"}
FOUND = {
    "conversation_id": "c-17",
    "turn_id": "t-1",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "runbook_url": "https://wiki.test/runbooks/AgentLoopDetected.md",
    "dashboard_url": "https://grafana.test/d/turnwatch-loops?var-cluster=eu+1&var-agent=support-bot&var-tool=search",
}


def test_an_alert_has_what_the_packs_alerts_have_and_where_to_look(receiver):
    pager = tw.Pager(tw.alertmanager(receiver.url, {"cluster": "eu 1"}, **LINKS))
    pager(dataclasses.replace(PAGE, trace_id=FOUND["trace_id"], spend_usd=1.5))
    assert pager.flush()
    ((_, (alert,)),) = receiver.posts
    said = {"summary": "An agent is stuck in a loop.", "description": PAGE.reason, "turn_spend": "1.50 USD"}
    assert alert["annotations"] == {**said, **FOUND}


def test_what_is_not_known_is_no_annotation(receiver):
    pager = tw.Pager(tw.alertmanager(receiver.url))
    pager(dataclasses.replace(PAGE, conversation_id=None))
    assert pager.flush()
    ((_, (alert,)),) = receiver.posts
    assert alert["annotations"].keys() == {"summary", "description", "turn_id", "runbook_url"}


def test_the_runbooks_are_where_the_pack_says_that_they_are():
    assert f"runbookBaseUrl: '{RUNBOOKS}'," in Path("alert_rules/config.libsonnet").read_text("utf-8")


def test_a_webhook_gets_one_object(receiver):
    pager = tw.Pager(tw.webhook(f"{receiver.url}/hook", {"cluster": "eu 1"}, **LINKS))
    pager(dataclasses.replace(PAGE, trace_id=FOUND["trace_id"], spend_usd=1.5))
    assert pager.flush()
    ((path, body),) = receiver.posts
    assert path == "/hook"
    assert body["reason"] == "search gave the same result."
    assert body["labels"]["agent"] == "support-bot"
    assert body["spend_usd"] == 1.5
    assert FOUND.items() <= body.items()


def test_a_page_that_fails_is_tried_once_more_and_then_counted(receiver):
    faults: list[str] = []
    pager = tw.Pager(tw.webhook(receiver.url), on_fault=faults.append)
    receiver.answers += [500, 200, 500, 500]
    pager(PAGE)
    assert pager.flush()
    assert (len(receiver.posts), faults) == (2, [])
    pager(PAGE)
    assert pager.flush()
    assert (len(receiver.posts), faults) == (4, ["a page that could not be sent"])


def test_a_full_queue_drops_and_counts_and_never_waits():
    faults: list[str] = []
    go_on, busy = threading.Event(), threading.Event()

    def send(_: tw.Page) -> None:
        busy.set()
        go_on.wait(30)

    pager = tw.Pager(send, queue_size=2, on_fault=faults.append)
    pager(PAGE)
    busy.wait(30)
    for _ in range(5):
        pager(PAGE)
    assert faults == ["a pager whose queue is full"] * 3
    assert not pager.flush(0.01)
    go_on.set()
    assert pager.flush()


# Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_a_thread_of_its_own(receiver):
    pager = tw.Pager(tw.webhook(receiver.url))
    pager(PAGE)
    assert pager.flush()
    child = os.fork()
    if child == 0:
        pager(PAGE)
        os._exit(0 if pager.flush(10) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(receiver.posts) == 2


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_its_parents_pages():
    under_way, go_on = threading.Event(), threading.Event()

    def send(page: tw.Page) -> None:
        under_way.set()
        go_on.wait(30)

    pager = tw.Pager(send)
    pager(PAGE)
    under_way.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if pager.flush(1) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not pager.flush(0.01)
    go_on.set()
    assert pager.flush()


def test_a_pager_that_gets_no_thread_asks_for_one_at_the_next_page(monkeypatch):
    sent: list[tw.Page] = []
    pager = tw.Pager(sent.append)

    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more)
        with pytest.raises(RuntimeError):
            pager(PAGE)
    pager(PAGE)
    assert pager.flush()
    assert sent == [PAGE]


def test_the_settings_name_where_pages_go(make_watch, receiver):
    page = PageSettings(alertmanager_url=receiver.url, webhook_url=f"{receiver.url}/hook", labels={"namespace": "n"})
    alerts = {"runbookBaseUrl": "https://wiki.test/r", "dashboardBaseUrl": "https://grafana.test/d"}
    watch = make_watch(on_loop="page", page=page, alerts=alerts)
    assert pager_of(watch.settings) is pager_of(watch.settings)
    with tw.turn("a", "c-1", watch=watch) as turn:
        for _ in range(5):
            turn.call_tool("search", lambda: "nothing new")
    for _ in range(200):
        if len(receiver.posts) == 2:
            break
        threading.Event().wait(0.05)
    posts = dict(receiver.posts)
    (alert,) = posts["/api/v2/alerts"]
    for page in (alert["annotations"], posts["/hook"]):
        assert page["runbook_url"] == "https://wiki.test/r/AgentLoopDetected.md"
        variables = "var-namespace=n&var-agent=a&var-tool=search"
        assert page["dashboard_url"] == f"https://grafana.test/d/turnwatch-loops?{variables}"


def test_a_page_names_the_trace_and_what_the_turn_has_cost(make_watch):
    pages: list[tw.Page] = []
    watch = make_watch(on_loop="page")
    watch.exemplar = lambda: {"trace_id": FOUND["trace_id"], "span_id": "b7ad6b7169203331"}
    with tw.turn("a", "c-1", watch=watch, pager=pages.append) as turn:
        for _ in range(4):
            with turn.model_call("m") as call:
                call.usage(input_tokens=1, output_tokens=1, spend_usd=0.125)
            turn.call_tool("search", lambda: "nothing new")
    (page,) = pages
    assert (page.trace_id, page.spend_usd) == (FOUND["trace_id"], 0.5)


def test_settings_that_name_nothing_have_no_pager(watch):
    assert pager_of(watch.settings) is None


def test_a_callable_that_exits_or_a_broken_count_of_faults_costs_one_page_and_not_the_next():
    sent: list[str] = []

    def send(page: tw.Page) -> None:
        sent.append(page.turn_id)
        raise SystemExit if page.turn_id == "exit" else OSError("down")

    def broken(where: str) -> None:
        raise RuntimeError(where)

    pager = tw.Pager(send, on_fault=broken)
    for turn_id in ("exit", "down", "exit", "down"):
        pager(dataclasses.replace(PAGE, turn_id=turn_id))
        assert pager.flush(10)
    assert sent == ["exit", "down", "down"] * 2

"""Servers that top looks at: a real exporter with agents in it, and pages as a test wants them."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import prometheus_client
from prometheus_client import CollectorRegistry

from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.watch import Watch
from turnwatch.metrics.prometheus import StoreCollector
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings


class Agents:
    """An exporter in this process, with a watch of its own.

    ``loop`` lets an agent ask for the same again and again, in an open turn; ``work`` lets one have turns that end.
    """

    def __init__(self, port):
        store = Store()
        self.watch = Watch(Settings(), store)
        registry = CollectorRegistry()
        registry.register(StoreCollector(store, lambda: self.watch))
        self._server, self._thread = prometheus_client.start_http_server(port, "127.0.0.1", registry)
        self.port = port
        self._turns = {}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/metrics"

    def loop(self, agent, tool, rounds=1):
        turn = self._turns.get(agent) or self._turns.setdefault(agent, self.watch.open_turn(agent))
        for _ in range(rounds):
            self._round(turn, tool, {"query": "the same"}, [])

    def work(self, agent, tool, questions=1, outcome="ok"):
        for number in range(questions):
            turn = self.watch.open_turn(agent)
            self._round(turn, tool, {"question": number}, [number], outcome)
            turn.end()

    def _round(self, turn, tool, arguments, result, outcome="ok"):
        turn.begin_model()
        turn.end_model(ModelCall("gpt-4o", usage=Usage(input=1_000, output=100)))
        call = ToolCall(tool, arguments)
        turn.begin_call(call)
        call.result, call.outcome = Evidence.of(result), outcome
        turn.end_call(call)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Pages:
    """A server that answers as it is told and keeps what it was asked.

    Attributes:
        answer: Called with the request's path; gives status, body and headers.
        asked: (path, headers) of every request.
    """

    def __init__(self):
        self.answer = lambda path: (200, "agent_open_turns{agent='x'} 1\n", {})
        self.asked = []
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                pages.asked.append((self.path, dict(self.headers), body.decode()))
                status, text, headers = pages.answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(text.encode())
                except OSError:  # whoever asked has gone
                    return

            do_POST = do_GET  # noqa: N815 http.server's name

            def log_message(self, format, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def until(holds, what, seconds=30):
    """Wait for ``holds()`` to be true, and return what it gave."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what() if callable(what) else what}"
        time.sleep(0.05)
    return found

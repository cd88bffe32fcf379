"""A real ``turnwatch serve`` on free loopback ports, and a receiver for what it passes on."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import requests
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}


@dataclass
class Service:
    """A service process and where it listens."""

    process: subprocess.Popen
    http: str
    grpc: str | None
    metrics_at: str
    errors: Path

    def post(self, body, headers=PROTOBUF, path="/v1/traces", **more):
        return requests.post(self.http + path, data=body, headers=headers, timeout=120, **more)

    def metrics(self) -> dict[tuple[str, frozenset], float]:
        text = requests.get(f"{self.metrics_at}/metrics", timeout=30).text
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def metric(self, name, **labels) -> float:
        """The sum over all series that have these labels."""
        wanted = set(labels.items())
        return sum(value for (found, has), value in self.metrics().items() if found == name and wanted <= has)

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    @property
    def port(self) -> int:
        return urlsplit(self.http).port

    def stop(self, number=signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@contextlib.contextmanager
def serving(folder: Path, *arguments, grpc=False, traced=True, **settings):
    """Run the service; ``settings`` are keys of the service section.

    Measuring its coverage takes memory: ``traced=False`` where its own is measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    errors = folder / "stderr"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNWATCH_")}
    if not traced:
        kept = {name: value for name, value in kept.items() if not name.startswith("COV")}
    chosen = {f"TURNWATCH_SERVICE__{name.upper()}": str(value) for name, value in settings.items()}
    path = os.pathsep.join(filter(None, [str(ROOT / "exporter"), os.environ.get("PYTHONPATH")]))
    ports = {"--port": "0", "--grpc-port": "0", "--metrics-port": "0"}
    given = [part for name, value in ports.items() if name not in arguments for part in (name, value)]
    options = [*given, *([] if grpc else ["--no-grpc"]), "--state-dir", str(folder / "state"), *map(str, arguments)]
    with errors.open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", "from turnwatch.cli import main; main()", "serve", *options],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**kept, **chosen, "PYTHONPATH": path},
        )
    try:
        said = [process.stdout.readline() for _ in range(3 if grpc else 2)]
        if not all(said):
            raise RuntimeError(f"the service did not start: {errors.read_text()}")
        where = [line.split(" on ")[1].strip() for line in said]
        yield Service(process, where[0], where[1] if grpc else None, where[-1].removesuffix("/metrics"), errors)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
        process.stdout.close()


@dataclass
class Downstream:
    """What the next receiver got, and what it answers."""

    url: str = ""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    refused: int = 0
    came: list[float] = field(default_factory=list)
    """When each request came that was taken, on the clock of ``time.monotonic``."""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Answers to give before 200; the last one stays as long as ``keeps_refusing``."""
    keeps_refusing: bool = False
    delay: float = 0.0
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def forget(self) -> None:
        """Begin anew."""
        self.got, self.came, self.answers = [], [], []
        self.refused, self.keeps_refusing, self.delay = 0, False, 0.0

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, _, body in self.got]


@contextlib.contextmanager
def downstream(port=0):
    """A receiver that keeps what it is sent."""
    kept = Downstream()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            time.sleep(kept.delay)
            kept.may_answer.wait(120)
            with lock:
                status, headers = 200, {}
                if kept.answers:
                    status, headers = kept.answers[0] if kept.keeps_refusing else kept.answers.pop(0)
                    kept.refused += 1
                else:
                    named = {name.lower(): value for name, value in self.headers.items()}
                    kept.came.append(time.monotonic())
                    kept.got.append((self.path, named, body))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        connections: ClassVar[list[socket.socket]] = []  # of this class, which each call makes anew

        def process_request(self, request, client_address):
            self.connections.append(request)
            super().process_request(request, client_address)

        def handle_error(self, request, client_address):
            pass  # the service went away in the middle, which is what some tests are about

        def close_connections(self):
            for connection in self.connections:
                with contextlib.suppress(OSError):  # the other side was first
                    connection.shutdown(socket.SHUT_RDWR)

    server = Server(("127.0.0.1", port), Handler)
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        server.close_connections()
        thread.join()


def eventually(condition, seconds=60.0):
    """The condition's first true value; fails when there is none in time."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, "did not happen in time"
        time.sleep(0.05)
    return value

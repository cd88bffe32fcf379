"""What is still answered between SIGTERM and the end."""

import signal
import subprocess
import sys
import threading

import grpc
import pytest
import requests
from tests.service.bodies import turn_body
from tests.service.running import eventually, serving

SCRAPED_WHILE_TURNS_END = """
import os, signal, urllib.request
import prometheus_client
from turnwatch.core.watch import Watch
from turnwatch.service.run import Places, run_service
from turnwatch.sources.spans.assembly import Assembler

def flush(self):
    print(urllib.request.urlopen(where[0], timeout=30).status)

def started(addresses):
    where.append(addresses.metrics + "/metrics")
    os.kill(os.getpid(), signal.SIGTERM)

where, Assembler.flush = [], flush
run_service(Watch(), prometheus_client.REGISTRY, Places(port=0, grpc_port=None, metrics_port=0), started)
"""


def test_metrics_are_answered_while_open_turns_are_ended():
    ran = subprocess.run(
        [sys.executable, "-c", SCRAPED_WHILE_TURNS_END], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "200\n", ran.stderr


def test_no_port_takes_requests_while_another_finishes_its_last(tmp_path):
    body = turn_body()
    begun, go_on = threading.Event(), threading.Event()

    def slowly():
        yield body[:10]
        begun.set()
        go_on.wait(60)
        yield body[10:]

    answers = []
    with serving(tmp_path, grpc=True) as service:
        sender = threading.Thread(target=lambda: answers.append(service.post(slowly())))
        sender.start()
        begun.wait(60)
        # What is connected later is answered later: by now the service reads the other's body.
        assert requests.get(f"{service.http}/healthz", timeout=30).ok
        with grpc.insecure_channel(service.grpc) as channel:
            export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            export(body, timeout=30)
            service.process.send_signal(signal.SIGTERM)
            eventually(lambda: requests.get(f"{service.metrics_at}/readyz", timeout=30).status_code == 503)
            with pytest.raises(grpc.RpcError):
                eventually(lambda: export(body, timeout=30) is None)
        assert sender.is_alive()
        go_on.set()
        sender.join()
        assert service.process.wait(30) == 0
    assert answers[0].status_code == 200

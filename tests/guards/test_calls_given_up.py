"""Callers that are cancelled, results that cannot be shared, threads that outlive whoever waited for them."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
import requests
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import turnwatch as tw


async def cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_waiter_is_over_and_the_call_it_waited_for_goes_on(watch, monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    finish = asyncio.Event()

    async def read() -> int:
        await finish.wait()
        return 7

    gateway = tw.ToolGateway(impls={"read": read}, watch=watch)
    async with tw.turn("a", watch=watch):
        first = asyncio.create_task(gateway.acall("read"))
        await asyncio.sleep(0)
        second = asyncio.create_task(gateway.acall("read"))
        await asyncio.sleep(0)
        await cancelled(second)
        assert watch.value("agent_tool_calls_total", "a", "read", "error") == 1
        assert [span.attributes["error.type"] for span in exporter.get_finished_spans()] == ["CancelledError"]
        finish.set()
        assert await first == 7


async def test_when_the_first_caller_is_cancelled_one_of_the_others_runs_the_tool(watch):
    runs: list[int] = []
    finish = asyncio.Event()

    async def read() -> int:
        runs.append(1)
        await finish.wait()
        return 7

    gateway = tw.ToolGateway(impls={"read": read}, watch=watch)
    async with tw.turn("a", watch=watch):
        first = asyncio.create_task(gateway.acall("read"))
        await asyncio.sleep(0)
        others = [asyncio.create_task(gateway.acall("read")) for _ in range(5)]
        await asyncio.sleep(0)
        await cancelled(first)
        finish.set()
        assert await asyncio.gather(*others) == [7] * 5
    assert len(runs) == 2


async def test_a_write_that_outlives_its_cancelled_caller_invalidates_when_it_is_done(watch):
    stock, begun, go_on = [1], threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        go_on.wait(10)
        stock[0] = 2

    gateway = tw.ToolGateway(impls={"write": write, "read": lambda: stock[0]}, watch=watch)
    async with tw.turn("a", watch=watch):
        writing = asyncio.create_task(gateway.acall("write"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        await cancelled(writing)
        epoch = gateway._shared.results.epoch
        assert await gateway.acall("read") == 1
        go_on.set()
        while gateway._shared.results.epoch == epoch:
            time.sleep(0.001)
        assert await gateway.acall("read") == 2


async def test_a_plain_function_that_raises_stop_iteration_does_not_hang_its_caller(watch):
    gateway = tw.ToolGateway(impls={"read": lambda: next(iter([]))}, watch=watch)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(gateway.acall("read"), 10)


class CannotBeReadBack:
    def __reduce__(self):
        return _refuse, ()


def _refuse() -> None:
    raise TypeError("this cannot be read back")


def test_parallel_duplicates_run_for_themselves_where_a_result_cannot_be_had_twice(watch):
    waiting, go_on = threading.Semaphore(0), threading.Event()

    def read() -> CannotBeReadBack:
        waiting.release()
        go_on.wait(10)
        return CannotBeReadBack()

    gateway = tw.ToolGateway(impls={"read": read}, watch=watch)
    with tw.turn("a", watch=watch) as turn, ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(gateway.call, "read", turn=turn) for _ in range(3)]
        waiting.acquire(timeout=10)
        while turn.tool_calls < 3:
            time.sleep(0.001)
        go_on.set()
        assert [type(call.result(10)) for call in calls] == [CannotBeReadBack] * 3


def test_a_response_that_is_still_on_its_way_is_left_to_its_caller(watch):
    def of_httpx() -> httpx2.Response:
        return httpx2.Response(200, content=(part for part in (b"a", b"b")))

    def of_requests() -> requests.Response:
        response = requests.Response()
        response.status_code = 200
        response.raw = io.BytesIO(b"ab")
        return response

    gateway = tw.ToolGateway(impls={"get_file": of_httpx, "fetch_file": of_requests}, watch=watch)
    assert [gateway.call("get_file").read() for _ in range(2)] == [b"ab", b"ab"]
    assert [gateway.call("fetch_file").content for _ in range(2)] == [b"ab", b"ab"]


def test_a_response_that_was_read_is_handed_out_again(watch):
    runs: list[int] = []

    def get() -> httpx2.Response:
        runs.append(1)
        return httpx2.Response(200, content=b"ab")

    gateway = tw.ToolGateway(impls={"get_file": get}, watch=watch)
    assert [gateway.call("get_file").content for _ in range(2)] == [b"ab", b"ab"]
    assert len(runs) == 1


def test_a_turn_that_is_stopped_in_a_tool_stops_none_that_waits_for_the_same_call(watch):
    inside, go_on = threading.Event(), threading.Event()

    def search() -> str:
        inside.set()
        go_on.wait(10)
        if threading.current_thread().name == "stopped":
            raise tw.StepLimitExceeded("no more")
        return "found"

    gateway = tw.ToolGateway(impls={"search": search}, watch=watch, overrides={"search": {"read_only": True}})
    turns = {name: tw.turn("a", "c-1", watch=watch).open() for name in ("stopped", "going on")}
    outcomes: dict[str, object] = {}

    def run() -> None:
        name = threading.current_thread().name
        try:
            outcomes[name] = gateway.call("search", turn=turns[name])
        except tw.TurnStopped as stopped:
            outcomes[name] = stopped.stop_reason

    first = threading.Thread(target=run, name="stopped")
    first.start()
    inside.wait(10)
    other = threading.Thread(target=run, name="going on")
    other.start()
    while turns["going on"].tool_calls == 0:
        time.sleep(0.01)
    go_on.set()
    first.join()
    other.join()
    assert outcomes == {"stopped": "max_iterations", "going on": "found"}

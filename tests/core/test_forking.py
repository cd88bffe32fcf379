"""A child that is forked while other threads of the parent are busy."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from turnwatch.core import forking
from turnwatch.core.engine import Engine
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings


def works_in_child(work: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        ok = False
        try:
            done: list[bool] = []
            thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
            thread.start()
            thread.join(5)
            ok = done == [True]
        finally:
            os._exit(0 if ok else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_lock_that_another_thread_holds_is_open_in_the_child():
    lock = fork_safe_lock()
    taken, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            enough.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        assert works_in_child(lambda: lock.acquire(timeout=2))
    finally:
        enough.set()
        thread.join()
    assert lock.acquire(timeout=2)


def test_a_fork_waits_until_a_quiet_lock_is_open_and_leaves_it_open(monkeypatch):
    monkeypatch.setattr(forking, "_PATIENCE_SECONDS", 60.0)
    lock = fork_safe_lock(quiet=True)
    halves: list[int] = []
    taken = threading.Event()

    def write() -> None:
        with lock:
            halves.append(1)
            taken.set()
            threading.Event().wait(0.2)
            halves.append(2)

    thread = threading.Thread(target=write)
    thread.start()
    taken.wait()
    assert works_in_child(lambda: halves == [1, 2] and lock.acquire(timeout=2))
    thread.join()
    assert lock.acquire(timeout=2)


def test_a_child_can_record_while_a_thread_of_the_parent_is_judging(monkeypatch):
    watch = Watch(Settings(), Store())
    turn = watch.open_turn("bot", conversation_id="c")
    judging, enough = threading.Event(), threading.Event()
    observe = Engine.observe

    def slow(self, call):
        judging.set()
        enough.wait()
        return observe(self, call)

    monkeypatch.setattr(Engine, "observe", slow)
    thread = threading.Thread(target=turn.record, args=("search", "a"))
    thread.start()
    judging.wait()
    monkeypatch.setattr(Engine, "observe", observe)
    try:
        assert works_in_child(lambda: turn.record("search", "a") == 2)
        assert works_in_child(lambda: watch.open_turn("bot", conversation_id="c").record("search", "a") == 1)
    finally:
        enough.set()
        thread.join()

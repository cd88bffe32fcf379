"""A prefork server in small: the parent opens a turn, forks two workers, kills one, and scrapes in between."""

from __future__ import annotations

import os
import signal
import time

from prometheus_client import generate_latest

import turnwatch as tw


def worker(calls: int) -> None:
    tw.turn("bot").__enter__().__exit__(None, None, None)
    state = tw.TurnState("bot")
    for _ in range(calls):
        state.record("search", "00000000000000aa")
    time.sleep(60)
    state.end()


def wait_for(*texts: str, seconds: float = 30.0) -> str:
    deadline = time.monotonic() + seconds
    while True:
        scraped = generate_latest(tw.metrics_registry()).decode()
        if all(text in scraped for text in texts) or time.monotonic() > deadline:
            return scraped
        time.sleep(0.05)


def main() -> None:
    parent = tw.TurnState("bot")  # open in the parent; must not be open in the workers as well
    workers = []
    for calls in (5, 3):
        pid = os.fork()
        if pid == 0:
            worker(calls)
            os._exit(0)
        workers.append(pid)
    try:
        show(parent, workers)
    finally:  # also where a scrape fails: whoever reads what is printed here waits for them
        for pid in workers:
            os.kill(pid, signal.SIGKILL)


def show(parent: tw.TurnState, workers: list[int]) -> None:
    parent.end("user_cancelled")
    print("### both alive")
    both = (
        'agent_duplicate_tool_calls_total{agent="bot",tool="search"} 4.0',
        'agent_turn_identical_calls_max{agent="bot",tool="search"} 5.0',
        'agent_open_turns{agent="bot"} 2.0',
    )
    print(wait_for(*both))
    os.kill(workers[0], signal.SIGKILL)
    os.waitpid(workers[0], 0)
    workers.pop(0)
    print("### one killed")
    print(wait_for('agent_turn_identical_calls_max{agent="bot",tool="search"} 3.0', seconds=0))
    print("### window over")
    print(wait_for('agent_turn_identical_calls_max{agent="bot",tool="search"} 0.0'))


if __name__ == "__main__":
    main()

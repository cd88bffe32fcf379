"""Record docs/top.svg: half a minute of made-up agents, one of them stuck, as ``turnwatch top`` draws them.

Run by ``make picture``.
"""

from __future__ import annotations

import io
import itertools
import random
import sys
import threading
import time
from pathlib import Path

from prometheus_client import CollectorRegistry
from rich.console import Console

import turnwatch as tw
from turnwatch.settings import Settings
from turnwatch.top.address import address_of
from turnwatch.top.board import board_of
from turnwatch.top.frame import frame_of
from turnwatch.top.journal import Journal
from turnwatch.top.marks import Marks
from turnwatch.top.polling import Polling
from turnwatch.top.sources import source_of
from turnwatch.top.view import View

COLUMNS, LINES = 116, 22
SECONDS = 30
HEALTHY = (
    ("billing-bot", "get_invoice"),
    ("coder", "run_tests"),
    ("research-bot", "web_search"),
    ("triage-bot", "read"),
)


def main(picture: Path) -> None:
    """Let the agents work, watch them, and save the screen."""
    tw.configure(tw.Settings(), registry=CollectorRegistry())
    server, thread = tw.start_metrics_server(port=0)
    enough = threading.Event()
    workers = [threading.Thread(target=_stuck, args=(enough,))]
    workers += [threading.Thread(target=_healthy, args=(enough, *each)) for each in HEALTHY]
    source = source_of(
        address_of(f"127.0.0.1:{server.server_port}", {}), window_seconds=60, timeout_seconds=5, forced="metrics"
    )
    polling, journal = Polling([source], 1.0), Journal()
    polling.start()
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        journal.note(polling.states)
        time.sleep(0.2)
    board = board_of(polling.states, journal, Marks(Settings()), time.time())
    polling.stop()
    enough.set()
    for worker in workers:
        worker.join()
    server.shutdown()
    server.server_close()
    thread.join()
    console = Console(
        record=True, file=io.StringIO(), width=COLUMNS, height=LINES, force_terminal=True, color_system="standard"
    )
    for line in frame_of(board, View(), COLUMNS, LINES).lines:
        console.print(line, no_wrap=True, crop=True)
    console.save_svg(str(picture), title="turnwatch top http://127.0.0.1:9464/metrics")


def _search_orders(customer_id: str) -> list[str]:
    return [] if customer_id == "C-7841" else ["O-1"]


def _stuck(enough: threading.Event) -> None:
    with tw.turn(agent="support-bot") as turn:
        for number in itertools.count(1):
            with turn.model_call("claude-sonnet-4-5") as call:
                call.usage(input_tokens=6_000 + 150 * number, output_tokens=150)
            turn.call_tool("search_orders", _search_orders, customer_id="C-7841")
            if enough.wait(1.0):
                return


def _healthy(enough: threading.Event, agent: str, tool: str) -> None:
    chance = random.Random(agent)
    for question in itertools.count():
        with tw.turn(agent=agent) as turn:
            for step in range(chance.randint(1, 4)):
                with turn.model_call("gpt-4o") as call:
                    call.usage(input_tokens=3_000, output_tokens=150)
                turn.call_tool(tool, lambda number: number, number=(question, step))
                if enough.wait(chance.uniform(0.5, 2.5)):
                    return
        if enough.wait(chance.uniform(0.0, 3.0)):
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))

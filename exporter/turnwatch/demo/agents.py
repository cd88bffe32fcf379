"""The demonstration's two agents: one that gets stuck and one that does not. No model is asked: both are scripted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import turnwatch as tw

STUCK_AGENT: Final = "support-bot"
HEALTHY_AGENT: Final = "billing-bot"
TOOL: Final = "search_orders"
MODEL: Final = "claude-sonnet-4-5"

# A second a round is quick for a model and its tool, and keeps the demonstration short.
ROUND_SECONDS: Final = 1.0
_PROMPT_TOKENS: Final = 6_000
_TOKENS_A_ROUND: Final = 150


def search_orders(customer_id: str) -> list[dict[str, str]]:
    """Find a customer's orders: the tool both agents have."""
    return [] if customer_id == "C-7841" else [{"customer_id": customer_id, "order": "O-1", "state": "shipped"}]


class Loop:
    """What the stuck agent has done so far, as its metrics and its turn tell it.

    Attributes:
        state: Its turn's counts and verdicts; None before the turn is open.
        call_times: When each tool call started, in seconds since the epoch.
    """

    def __init__(self) -> None:
        self.state: tw.TurnState | None = None
        self.call_times: list[float] = []

    @property
    def usd_per_call(self) -> float:
        """Mean dollars of one round so far."""
        if self.state is None or not self.state.tool_calls:
            return 0.0
        return (self.state.spend_usd or 0.0) / self.state.tool_calls

    @property
    def seconds_per_call(self) -> float:
        """Mean seconds between two calls so far."""
        if len(self.call_times) < 2:
            return ROUND_SECONDS
        return (self.call_times[-1] - self.call_times[0]) / (len(self.call_times) - 1)


@contextmanager
def both_at_work(on_call: Callable[[Loop, tw.TurnState], None]) -> Iterator[Loop]:
    """Run both agents in threads of their own while the context is open.

    Args:
        on_call: Told of each call of the stuck agent when it is done.
    """
    enough = threading.Event()
    loop = Loop()
    threads = [
        threading.Thread(target=_run_stuck, args=(enough, loop, on_call), name=STUCK_AGENT),
        threading.Thread(target=_run_healthy, args=(enough,), name=HEALTHY_AGENT),
    ]
    for thread in threads:
        thread.start()
    try:
        yield loop
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def _run_stuck(enough: threading.Event, loop: Loop, on_call: Callable[[Loop, tw.TurnState], None]) -> None:
    with tw.turn(agent=STUCK_AGENT, conversation_id="stuck") as turn:
        loop.state = turn.state
        for number in range(1, 1_000_000):
            with turn.model_call(MODEL) as call:
                call.usage(input_tokens=_PROMPT_TOKENS + number * _TOKENS_A_ROUND, output_tokens=_TOKENS_A_ROUND)
            loop.call_times.append(time.time())
            turn.call_tool(TOOL, search_orders, customer_id="C-7841")
            on_call(loop, turn.state)
            if enough.wait(ROUND_SECONDS):
                turn.stop("user_cancelled")
                return


def _run_healthy(enough: threading.Event) -> None:
    """Answer one question after another; each needs one look-up, and one look again, which is nobody's loop."""
    for question in range(1, 1_000_000):
        with tw.turn(agent=HEALTHY_AGENT, conversation_id=f"question-{question}") as turn:
            for _ in range(2):
                with turn.model_call(MODEL) as call:
                    call.usage(input_tokens=_PROMPT_TOKENS, output_tokens=_TOKENS_A_ROUND)
                turn.call_tool(TOOL, search_orders, customer_id=f"C-{question}")
            with turn.model_call(MODEL) as call:
                call.usage(input_tokens=_PROMPT_TOKENS, output_tokens=2 * _TOKENS_A_ROUND)
        if enough.wait(ROUND_SECONDS):
            return

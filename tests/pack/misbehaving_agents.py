"""An exporter process of its own: one agent for each alert, named after it, that does what the alert is about.

Started with the trailing window in seconds. Prints the port of /metrics, goes to work when a line comes in, and
serves until its standard input is closed.
"""

import contextlib
import itertools
import sys
import threading
import time

import turnwatch as tw

MODEL = "claude-sonnet-4-5"
KNOWN_AGENTS = 40
PAUSE_SECONDS = 0.5


def nothing(query=""):
    return []


def failing(query=""):
    raise OSError("down")


def think(turn, model=MODEL, tokens=100):
    with turn.model_call(model) as call:
        call.usage(input_tokens=tokens, output_tokens=10)


def in_a_turn(work):
    def behaviour(agent):
        with tw.turn(agent=agent) as turn:
            work(turn)

    return behaviour


def loop(turn):
    for _ in range(8):
        think(turn)
        turn.call_tool("search", nothing, query="the same")


def take_many_steps(turn):
    for _ in range(30):
        think(turn)


def wait_long(turn):
    time.sleep(25)


def use_unknown_model(turn):
    think(turn, model="own-7b")


def invent_names(agent):
    for number in range(KNOWN_AGENTS):
        tw.TurnState(f"{agent}-{number}").end()


def chat_without_end(agent):
    for _ in range(60):
        with tw.turn(agent=agent, conversation_id=agent) as turn:
            think(turn)


def be_stopped(agent):
    limits = tw.Limits(max_tool_calls=1)
    with contextlib.suppress(tw.TurnStopped), tw.turn(agent=agent, limits=limits) as turn:
        for query in range(3):
            turn.call_tool("search", nothing, query=query)


# A rate needs a sample from before, so these three go on until the process ends.


def fail(turn):
    for query in itertools.count():
        with contextlib.suppress(OSError):
            turn.call_tool("fetch", failing, query=query)
        time.sleep(PAUSE_SECONDS)


def fail_to_think(turn):
    while True:
        with contextlib.suppress(OSError), turn.model_call(MODEL):
            failing()
        time.sleep(PAUSE_SECONDS)


def take_long(agent):
    for _ in range(12):
        with tw.turn(agent=agent):
            time.sleep(1.3)


def spend(turn):
    while True:
        think(turn, tokens=100_000)
        time.sleep(PAUSE_SECONDS)


BEHAVIOURS = {
    "AgentDuplicateToolCalls": in_a_turn(loop),
    "AgentLoopDetected": in_a_turn(loop),
    "AgentConversationRunaway": chat_without_end,
    "AgentIterationsHigh": in_a_turn(take_many_steps),
    "AgentTurnTokensHigh": in_a_turn(lambda turn: think(turn, tokens=1_100_000)),
    "AgentTurnLatencyHigh": take_long,
    "AgentTurnStuckOpen": in_a_turn(wait_long),
    "AgentStoppedByGuard": be_stopped,
    "AgentTurnSpendHigh": in_a_turn(lambda turn: think(turn, tokens=2_000_000)),
    "AgentSpendRateHigh": in_a_turn(spend),
    "AgentUnpricedModel": in_a_turn(use_unknown_model),
    "AgentToolErrorsHigh": in_a_turn(fail),
    "AgentModelErrorsHigh": in_a_turn(fail_to_think),
    "AgentWatchDegraded": invent_names,
}


def main(window_seconds):
    tw.configure(
        tw.Settings(detect={"window_seconds": window_seconds}, bounds={"agents": len(BEHAVIOURS) + KNOWN_AGENTS // 2})
    )
    server, _ = tw.start_metrics_server(port=0)
    for agent in BEHAVIOURS:
        tw.TurnState(agent).end()
    print(server.server_port, flush=True)
    sys.stdin.readline()
    for agent, behaviour in BEHAVIOURS.items():
        threading.Thread(target=behaviour, args=(agent,), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(float(sys.argv[1]))

"""An exporter process of its own: agents that behave in ways known by their names.

Started by the tests with the trailing window in seconds. Prints the port of /metrics, lets every agent do its work
at once, and serves until its standard input is closed.
"""

import itertools
import sys
import threading

import turnwatch as tw

_PAUSE_SECONDS = 0.2


def find_nothing(query):
    return []


def stuck(agent):
    with tw.turn(agent=agent) as turn:
        for _ in range(5):
            with turn.model_call("claude-sonnet-4-5") as call:
                call.usage(input_tokens=1_000, output_tokens=50)
            turn.call_tool("search", find_nothing, query="the same")
            threading.Event().wait(_PAUSE_SECONDS)


def progressing(agent):
    numbers = itertools.count()

    def next_number(query):
        return next(numbers)

    with tw.turn(agent=agent) as turn:
        for _ in range(5):
            turn.call_tool("search", next_number, query="the same")


def unseen(agent):
    turn = tw.TurnState(agent)
    for _ in range(5):
        turn.record("search", tw.input_hash("search", {"query": "the same"}))
    turn.end()


def healthy(agent):
    for question in range(20):
        with tw.turn(agent=agent) as turn:
            for _ in range(2):
                turn.call_tool("search", find_nothing, query=question)


def main(window_seconds):
    tw.configure(tw.Settings(detect={"window_seconds": window_seconds}))
    server, _ = tw.start_metrics_server(port=0)
    print(server.server_port, flush=True)
    sys.stdin.readline()
    for behaviour in (stuck, progressing, unseen, healthy):
        threading.Thread(target=behaviour, args=(behaviour.__name__,)).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(float(sys.argv[1]))

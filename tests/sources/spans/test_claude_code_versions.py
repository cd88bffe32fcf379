"""Spans and log events of Claude Code as its versions sent them; the older has hardly an attribute of conventions."""

import json
from pathlib import Path

import pytest

from turnwatch.core.watch import Watch
from turnwatch.sources.scan import ScannedTurn, scan
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.logs import LogData, logs_of_json
from turnwatch.sources.spans.otlp_json import spans_of_json
from turnwatch.sources.spans.span import SpanData, SpanEvent

HERE = Path(__file__).parent


def test_spans_that_have_only_names_are_read():
    found = [item for item in scan([HERE / "claude_code_2_1_197"]) if isinstance(item, ScannedTurn)]
    (turn,) = (item.state for item in found)
    assert (turn.agent, turn.conversation_id) == ("claude-code", "session-1")
    assert (turn.iterations, turn.tool_calls, turn.repeats, turn.missing_arguments) == (6, 5, 4, 0)
    assert (turn.stop_reason, [verdict.severity for verdict in turn.verdicts]) == ("final_answer", ["stuck"])
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (6000, 600)
    assert turn.spend_usd == pytest.approx(6 * 0.0045)  # what its own log events say


class Live:
    """Feeds what version 2.1.332 sent when its agent started a sub-agent in the background, and was told of its end."""

    def __init__(self, **options):
        folder = HERE / "claude_code_2_1_332"
        self.spans = sorted(spans_of_json(json.loads((folder / "traces.json").read_text())), key=lambda s: s.end_ns)
        self.logs = list(logs_of_json(json.loads((folder / "logs.json").read_text())))
        self.turns = []
        self.now = 0.0
        self.assembler = Assembler(Watch(), on_end=self.turns.append, **options)

    def feed(self, spans):
        for span in spans:
            self.now += 0.1
            self.assembler.feed([span], self.now)

    def feed_logs(self):
        self.assembler.feed_logs(self.logs, self.now)

    def wait(self, seconds):
        for _ in range(seconds):
            self.now += 1
            self.assembler.tick(self.now)

    def by_agent(self):
        """The turns that ended by themselves, by agent; the second turn of the main agent under a name of its own."""
        return {turn.agent if turn.tool_calls else "told of the end": turn for turn in self.turns}


def _logs_first(live):
    live.feed_logs()
    live.feed(live.spans)


def _logs_last(live):
    live.feed(live.spans)
    live.feed_logs()


def _parents_first(live):
    live.feed(reversed(live.spans))
    live.feed_logs()


def _without_logs(live):
    live.feed(live.spans)


@pytest.mark.parametrize("way", [_logs_first, _logs_last, _parents_first, _without_logs])
def test_a_sub_agent_in_the_background_is_a_turn_of_its_own_in_whatever_order_it_comes(way):
    live = Live()
    way(live)
    live.wait(30)
    turns = live.by_agent()
    main, below, told = turns["claude-code"], turns["general-purpose"], turns["told of the end"]
    assert (main.iterations, main.tool_calls, main.repeats) == (3, 2, 0)
    assert (below.iterations, below.tool_calls, below.repeats) == (5, 4, 0 if way is _without_logs else 3)
    assert (told.iterations, told.agent) == (1, "claude-code")
    assert below.parent is main
    assert {turn.conversation_id for turn in live.turns} == {"session-1"}
    assert {turn.stop_reason for turn in live.turns} == {"final_answer"}
    assert main.missing_arguments + below.missing_arguments == (6 if way is _without_logs else 0)


def test_a_sub_agent_that_runs_on_long_after_its_tool_returned_stays_open_until_it_answers():
    live = Live()
    live.feed_logs()
    of_main = [span for span in live.spans if "agent_id" not in span.attributes]
    of_sub_agent = [span for span in live.spans if "agent_id" in span.attributes]
    live.feed(of_main)
    for span in of_sub_agent:
        live.wait(60)
        live.feed([span])
    below = live.by_agent().get("general-purpose")
    assert below is None
    live.wait(30)
    below = live.by_agent()["general-purpose"]
    assert (below.iterations, below.tool_calls, below.repeats) == (5, 4, 3)


def test_calls_that_wait_for_log_events_count_before_their_turn_ends():
    live = Live(grace_seconds=0.5)
    live.feed(live.spans)
    live.wait(30)
    assert (live.by_agent()["claude-code"].tool_calls, live.by_agent()["claude-code"].missing_arguments) == (2, 2)


@pytest.mark.parametrize("logs_come", ["first", "last"])
def test_calls_belong_to_the_reply_that_asked_for_them_when_later_replies_overtake_them(logs_come):
    def span(span_id, name, start, **attributes):
        events = (SpanEvent("tool.output", {"content": "one"}),) if name == "claude_code.tool" else ()
        scope = "com.anthropic.claude_code.tracing"
        start_ns, end_ns = start * 1_000_000_000, (start + 1) * 1_000_000_000
        return SpanData(
            7, span_id, 1, name, attributes=attributes, events=events, scope=scope, start_ns=start_ns, end_ns=end_ns
        )

    spans, logs = [], []
    for number in range(4):
        call_id = f"toolu_{number}"
        spans.append(span(100 + number, "claude_code.llm_request", 2 * number, input_tokens=10, output_tokens=1))
        spans.append(span(200 + number, "claude_code.tool", 2 * number + 1, tool_name="Read", tool_use_id=call_id))
        logs.append(LogData(0, "", {"tool_use_id": call_id, "tool_input": '{"file_path": "a"}'}, None, trace_id=7))
    live = Live()
    live.logs = logs
    if logs_come == "first":
        live.feed_logs()
    live.feed(spans)
    live.wait(5)
    if logs_come == "last":
        live.feed_logs()
    live.assembler.flush()
    (turn,) = live.turns
    assert [(verdict.kind, verdict.severity) for verdict in turn.verdicts] == [
        ("stale_repeat", "warn"),
        ("stale_repeat", "stuck"),
    ]

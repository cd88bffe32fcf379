"""What the log says of a verdict: enough to find the conversation, and no more lines than somebody reads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.meter import Exemplar
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Kind, Severity, Verdict
from turnwatch.core.watch import Watch
from turnwatch.metrics.verdict_log import VerdictLog

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "turnwatch")
    return lambda: [(record.levelname, record.getMessage()) for record in caplog.records]


def logging_watch(exemplar: Callable[[], Exemplar | None] | None = None, **options: Any) -> Watch:
    watch = Watch(exemplar=exemplar)
    watch.on_verdict.append(VerdictLog(**options))
    return watch


def go_round(turn: TurnState, times: int = 8, tool: str = "search_orders") -> None:
    for _ in range(times):
        call = ToolCall(tool, {"customer": "C-7841"})
        turn.begin_call(call)
        call.result = Evidence.of("[]")
        turn.end_call(call)


def verdict(kind: Kind = "cycle", severity: Severity = "stuck", reason: str = "Round and round.") -> Verdict:
    return Verdict(kind, severity, "search_orders", 1, 4, reason, "full")


def give(turn: TurnState, *verdicts: Verdict) -> None:
    for each in verdicts:
        turn._verdicts = [*turn.verdicts, each]
        turn.watch.notify(turn, each)


def test_a_loop_is_two_lines_that_name_the_conversation(lines: Any):
    watch = logging_watch(exemplar=lambda: {"trace_id": TRACE, "span_id": SPAN})
    turn = watch.open_turn("support", conversation_id="c-1", turn_id="t-1")
    go_round(turn)
    (warned, first), (stuck, second) = lines()
    assert (warned, stuck) == ("INFO", "WARNING")
    about = f"agent=support tool=search_orders conversation=c-1 turn=t-1 trace={TRACE} reason="
    assert first.startswith("verdict=warn kind=")
    assert about in first
    assert second == f'verdict=stuck kind=stale_repeat {about}"{turn.verdict.reason}"'
    assert "C-7841" not in first + second


def test_the_trace_of_a_turn_of_spans_is_the_one_that_its_id_names(lines: Any):
    watch = logging_watch()
    give(watch.open_turn("support", turn_id=f"{TRACE}-{SPAN}"), verdict())
    ((_, line),) = lines()
    assert f" turn={TRACE}-{SPAN} trace={TRACE} reason=" in line
    assert "conversation=" not in line


def test_each_kind_is_said_once_a_turn_unless_it_becomes_graver(lines: Any):
    watch = logging_watch()
    made = [
        verdict(severity="observe"),
        verdict(severity="warn"),
        verdict(severity="warn"),
        verdict(),
        verdict(),
        verdict(severity="warn"),
        verdict("error_stall"),
    ]
    give(watch.open_turn("support"), *made)
    said = [line.split(" agent=")[0] for _, line in lines()]
    assert said == ["verdict=warn kind=cycle", "verdict=stuck kind=cycle", "verdict=stuck kind=error_stall"]
    give(watch.open_turn("support"), verdict())
    assert len(lines()) == 4


def test_lines_are_bounded_by_the_minute_and_what_was_left_out_is_counted(lines: Any):
    now = [100.0]
    watch = logging_watch(per_minute=2, clock=lambda: now[0])
    for _ in range(5):
        give(watch.open_turn("support"), verdict())
    assert len(lines()) == 2
    now[0] += 60.0
    give(watch.open_turn("support"), verdict())
    give(watch.open_turn("support"), verdict())
    assert lines()[2][1].endswith(' reason="Round and round." left_out=3')
    assert lines()[3][1].endswith(' reason="Round and round."')


def test_a_name_from_outside_breaks_no_line(lines: Any):
    give(logging_watch().open_turn('a b\nverdict="none" \x1b[2J', conversation_id="c=1"), verdict())
    ((_, line),) = lines()
    assert 'agent="a b�verdict=\\"none\\" �[2J" ' in line
    assert 'conversation="c=1"' in line
    assert line.isprintable()


def test_a_watch_of_files_logs_nothing(lines: Any):
    turn = Watch().open_turn("support")
    go_round(turn)
    assert turn.verdict is not None
    assert lines() == []

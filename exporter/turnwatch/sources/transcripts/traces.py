"""Runs and observations of tracing products, in any order in the file, gathered trace by trace into turns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Final

from turnwatch.core.events import MISSING, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts.recording import Recording
from turnwatch.sources.transcripts.records import read_records
from turnwatch.sources.wrong_shape import what_is_wrong

# Exports are in no particular order. Past this many, the trace that was quiet longest is taken to be complete.
_HELD_STEPS: Final = 50_000


@dataclass(slots=True)
class Step:
    """A model call or a tool call of a trace.

    Attributes:
        order: What the steps of a trace are sorted by.
        line: Where in the file (1-based).
        tool: The tool's name; None for a model call.
        args: The tool's arguments.
        result: Evidence of its result, None when unknown.
        failed: The call failed.
        model, provider: The model of a model call.
        usage: Its tokens.
        spend_usd: Its dollars.
        started, ended: Seconds since the epoch.
    """

    order: tuple[float, str]
    line: int
    tool: str | None = None
    args: object = MISSING
    result: Evidence | None = None
    failed: bool = False
    model: str = ""
    provider: str = ""
    usage: Usage | None = None
    spend_usd: float | None = None
    started: float | None = None
    ended: float | None = None


@dataclass(slots=True)
class Trace:
    """What is known of a trace so far.

    Attributes:
        trace_id: The trace's id.
        agent: The name of its root.
        conversation_id: The session or thread that it belongs to; None when it is one of its own.
        stop_reason: How its root ended.
        steps: Model calls and tool calls.
    """

    trace_id: str
    agent: str = ""
    conversation_id: str | None = None
    stop_reason: str = "unknown"
    steps: list[Step] = field(default_factory=list)


class Traces:
    """The traces of a file that may not be complete yet."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Trace] = OrderedDict()
        self._held = 0

    def of(self, trace_id: str) -> Trace:
        """The trace of this id."""
        trace = self._open.get(trace_id)
        if trace is None:
            trace = self._open[trace_id] = Trace(trace_id)
        self._open.move_to_end(trace_id)
        return trace

    def add(self, trace: Trace, step: Step) -> Iterator[RecordedTurn]:
        """Add a step to a trace; gives the turns of traces that had to make room."""
        trace.steps.append(step)
        self._held += 1
        while self._held > _HELD_STEPS and len(self._open) > 1:
            _, complete = self._open.popitem(last=False)
            self._held -= len(complete.steps)
            yield from _turn_of(complete)

    def end(self) -> Iterator[RecordedTurn]:
        """The turns of all traces that are left, in the order in which they began."""
        for trace in sorted(
            self._open.values(), key=lambda each: min((s.order for s in each.steps), default=(0.0, ""))
        ):
            yield from _turn_of(trace)
        self._open.clear()


def read_traces(
    stream: IO[bytes],
    parts_in: Callable[[object], Iterable[dict[str, Any]]],
    add: Callable[[Traces, int, dict[str, Any]], Iterator[RecordedTurn]],
    *,
    part: str,
) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of an export: one a trace. A part of a trace that cannot be read is reported, not raised.

    Args:
        stream: The file.
        parts_in: The parts of traces that a value of the file holds.
        add: Adds a part, which stands on this line (1-based), to its trace; gives the turns that made room for it.
        part: What the product calls a part, for people.
    """
    traces = Traces()
    for item in read_records(stream):
        if isinstance(item, BrokenLine):
            yield item
            continue
        line, value = item
        for each in parts_in(value):
            try:
                yield from add(traces, line, each)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                yield BrokenLine(line, f"{part} that cannot be read: {what_is_wrong(error)}")
    yield from traces.end()


def _turn_of(trace: Trace) -> Iterator[RecordedTurn]:
    if not trace.steps:
        return
    agent = trace.agent
    recording = Recording(trace.conversation_id or trace.trace_id, agent)
    line = min(step.line for step in trace.steps)
    for step in sorted(trace.steps, key=lambda each: each.order):
        if step.tool is None:
            recording.close_reply()
            recording.reply(
                line,
                model=step.model,
                provider=step.provider,
                usage=step.usage,
                spend_usd=step.spend_usd,
                at=step.ended or step.started,
                failed=step.failed,
            )
        else:
            recording.call(line, step.tool, step.args, at=step.started)
            recording.known_result(step.result, failed=step.failed, at=step.ended)
    for turn in recording.end(trace.stop_reason):
        turn.turn_id = trace.trace_id
        yield turn

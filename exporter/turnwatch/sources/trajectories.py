"""Recorded trajectories and test cases, one JSON object a line, as events grouped in turns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, Final

from turnwatch.core.events import MISSING, ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.usage import token_count
from turnwatch.sources.json_values import BrokenLine, read_values
from turnwatch.sources.wrong_shape import what_is_wrong

_SPAN_PREFIX: Final = "span:"
_HEXADECIMAL: Final = re.compile(r"(0x)?[0-9a-fA-F]{1,64}")
_INFERENCE_SPANS: Final = frozenset({"chat", "generate_content", "text_completion"})


@dataclass(slots=True)
class RecordedTurn:
    """One user turn of a recorded trajectory.

    Attributes:
        conversation_id: The trajectory's or case's id.
        turn_id: The same, with the number of the user turn added where there are several.
        agent: The framework, or the agent of the first call.
        events: Model calls and tool calls in the order of the file.
        stop_reason: How the trajectory ended, for its last turn; "unknown" where the file does not say.
        line: Number of its line in the file (1-based).
        parent: The turn that started this one, for a sub-agent whose parent is in the same file.
        outcome: What the file says came of the run; None where it does not say.
    """

    conversation_id: str
    turn_id: str
    agent: str
    events: list[ToolCall | ModelCall] = field(default_factory=list)
    stop_reason: str = "unknown"
    line: int = 0
    parent: RecordedTurn | None = None
    outcome: str | None = None


def looks_like_trajectory(record: object) -> bool:
    """Whether a parsed value is a trajectory or a case, or a list of them."""
    if isinstance(record, list):
        return bool(record) and all(isinstance(each, dict) and looks_like_trajectory(each) for each in record)
    return (
        isinstance(record, dict)
        and isinstance(record.get("calls"), list)
        and ("trajectory_id" in record or "id" in record)
    )


def read_trajectories(source: IO[bytes] | Iterable[str | bytes]) -> Iterator[RecordedTurn | BrokenLine]:
    """The turns of a file of trajectories or cases, in the file's order; what is broken is reported, not raised.

    Args:
        source: A file, or its lines: objects with the fields of a trajectory (trajectory_id, calls) or a case (id,
            calls).
    """
    for item in read_values(source):
        if isinstance(item, BrokenLine):
            yield item
            continue
        if not looks_like_trajectory(item.value):
            yield BrokenLine(item.line, "not a trajectory: no id or no list of calls")
            continue
        for record in item.value if isinstance(item.value, list) else (item.value,):
            unread: list[str] = []
            try:
                turns = turns_of(record, unread.append)
            except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
                yield BrokenLine(item.line, f"a trajectory that cannot be read: {what_is_wrong(error)}")
                continue
            yield from (BrokenLine(item.line, reason) for reason in unread)
            for turn in turns:
                turn.line = item.line
                yield turn


def turns_of(record: dict[str, Any], on_unread: Callable[[str], None] = lambda _: None) -> list[RecordedTurn]:
    """The turns of one parsed trajectory or case; none where it has calls and none of them can be read.

    Args:
        record: The trajectory. A call that cannot be read is passed over, a time or a number that cannot is unknown.
        on_unread: Told of each, without its content.
    """
    identity = str(record.get("trajectory_id", record.get("id")))
    model = str(record.get("model") or "")
    hints = record.get("tools") or {}
    unread = _Unread(on_unread)
    turns: list[RecordedTurn] = []
    current: object = MISSING
    batch: object = None
    for unread.call, call in enumerate(record["calls"], 1):
        if not isinstance(call, dict) or "tool" not in call:
            unread.say("has no tool, and is passed over")
            continue
        if call.get("turn") != current:
            current = call.get("turn")
            agent = str(record.get("agent") or call.get("agent") or record.get("framework") or "")
            turns.append(RecordedTurn(identity, "" if current is None else f"{identity}/{current}", agent))
            batch = None
        events = turns[-1].events
        span = _span(call)
        if span and span not in _INFERENCE_SPANS:
            continue
        at, usage, spend = _seconds(call, unread), _usage(call, unread), _spend(call, unread)
        reply = ModelCall(str(call.get("model") or model), usage=usage, spend_usd=spend, started=at, ended=at)
        if span:
            events.append(reply)
            continue
        # Calls asked for in one reply share its model call; without a batch each call had a reply of its own.
        same_reply = call.get("batch") is not None and call["batch"] == batch
        batch = call.get("batch")
        if same_reply:
            _add_usage(events, usage, spend)
        else:
            events.append(reply)
        events.append(_tool_call(call, hints, at, unread))
    if len(turns) == 1:
        turns[0].turn_id = identity
    if turns:
        turns[-1].stop_reason = _stop_reason(record)
    elif not record["calls"]:
        turns.append(RecordedTurn(identity, identity, str(record.get("framework") or ""), [], _stop_reason(record)))
    outcome = record.get("outcome")
    for turn in turns:
        turn.outcome = outcome if isinstance(outcome, str) else None
    return turns


class _Unread:
    """Says what of a call cannot be read."""

    __slots__ = ("_on_unread", "call")

    def __init__(self, on_unread: Callable[[str], None]) -> None:
        self._on_unread = on_unread
        self.call = 0

    def say(self, what: str) -> None:
        self._on_unread(f"call {self.call} {what}")


def _span(call: dict[str, Any]) -> str | None:
    tool = call.get("tool")
    return tool[len(_SPAN_PREFIX) :] if isinstance(tool, str) and tool.startswith(_SPAN_PREFIX) else None


def _tool_call(call: dict[str, Any], hints: dict[str, Any], at: float | None, unread: _Unread) -> ToolCall:
    tool = str(call["tool"])
    hint = hints.get(tool) if isinstance(hints, dict) else None
    hint = hint if isinstance(hint, dict) else {}
    captured = "args" in call and call.get("args_captured", True) is not False
    error = call.get("error")
    return ToolCall(
        tool,
        call["args"] if captured else MISSING,
        result=_evidence(call, unread),
        outcome="error" if error else "ok",
        started=at,
        ended=at,
        round=call.get("batch"),
        agent=str(call.get("agent") or ""),
        read_only=_first(call, hint, "read_only", "readOnlyHint"),
        destructive=_first(call, hint, "destructive", "destructiveHint"),
        idempotent=_first(call, hint, "idempotent", "idempotentHint"),
        polling=_first(call, hint, "polling"),
        mutates=_first(call, hint, "mutates"),
    )


def _first(call: dict[str, Any], hint: dict[str, Any], *names: str) -> bool | None:
    for name in names:
        for place in (call, hint):
            value = place.get(name)
            if value is not None:
                return bool(value)
    return None


def _evidence(call: dict[str, Any], unread: _Unread) -> Evidence | None:
    error = call.get("error")
    if isinstance(error, str):
        return Evidence.of(error)
    if call.get("result") is not None:
        return Evidence.of(call["result"])
    exact = call.get("result_hash")
    if exact is None:
        return None
    similar = call.get("result_sim")
    if not (similar is None or type(similar) is int or (isinstance(similar, str) and _HEXADECIMAL.fullmatch(similar))):
        unread.say("has a result_sim that is no hexadecimal number; read without it")
        similar = None
    head, normal, length = call.get("result_head"), call.get("result_nhash"), call.get("result_len")
    return Evidence.from_digests(
        str(exact),
        None if normal is None else str(normal),
        similar,
        head=head if isinstance(head, str) else "",
        length=length if type(length) is int else None,
    )


def _seconds(call: dict[str, Any], unread: _Unread) -> float | None:
    at = call.get("ts", call.get("t"))
    if at is None or isinstance(at, bool):
        return None
    try:
        if isinstance(at, str):
            moment = datetime.fromisoformat(at)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        # NaN and the like is how numbers are written that nobody knows.
        return float(at) if math.isfinite(at) else None
    except (TypeError, ValueError, OverflowError):
        unread.say("has a time that is neither seconds nor ISO 8601; read without it")
        return None


def _usage(call: dict[str, Any], unread: _Unread) -> Usage | None:
    tokens = call.get("tokens")
    given, produced = call.get("tokens_in"), call.get("tokens_out")
    if isinstance(tokens, dict):
        given, produced = tokens.get("in", tokens.get("input")), tokens.get("out", tokens.get("output"))
    elif tokens is not None:
        given = tokens
    if given is None and produced is None:
        return None
    try:
        counts = [token_count(int(value or 0)) for value in (given, produced)]
    except (TypeError, ValueError, OverflowError):
        counts = [None]
    if None in counts:
        unread.say("has tokens that are no number of 0 or more; read without them")
        return None
    return Usage(input=counts[0] or 0, output=counts[1] or 0)


def _spend(call: dict[str, Any], unread: _Unread) -> float | None:
    spend = call.get("cost_usd", call.get("usd"))
    if spend is None:
        return None
    try:
        dollars = float(spend)
    except (TypeError, ValueError, OverflowError):
        unread.say("has a cost that is no number of dollars; read without it")
        return None
    return dollars if 0.0 <= dollars < math.inf else None


def _add_usage(events: list[ToolCall | ModelCall], usage: Usage | None, spend: float | None) -> None:
    """Add what a later call of the same reply says about tokens and dollars to that reply's model call."""
    if usage is None and spend is None:
        return
    for event in reversed(events):
        if isinstance(event, ModelCall):
            if usage is not None:
                before = event.usage or Usage()
                event.usage = Usage(input=before.input + usage.input, output=before.output + usage.output)
            if spend is not None:
                event.spend_usd = (event.spend_usd or 0.0) + spend
            return


def _stop_reason(record: dict[str, Any]) -> str:
    ending = str(record.get("exit") or "").lower()
    if "max" in ending and ("turn" in ending or "iteration" in ending or "step" in ending):
        return "max_iterations"
    if "error" in ending:
        return "error"
    return "final_answer" if ending or record.get("outcome") else "unknown"

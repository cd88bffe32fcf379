"""Calls, and what the engine makes of them."""

from turnwatch.core.engine import Engine
from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence

PAGE = [f"line {word} of a long enough page" for word in ("one", "two", "three", "four", "five", "six", "seven")]


def call(tool="get", args=None, result="same", *, error=None, **more):
    text = error if error is not None else result
    return ToolCall(
        tool,
        {} if args is None else args,
        result=None if text is None else Evidence.of(text),
        outcome="ok" if error is None else "error",
        **more,
    )


def verdicts(calls, engine=None):
    engine = engine or Engine()
    return [(v.kind, v.severity, v.detected_call) for v in map(engine.observe, calls) if v is not None]


def stuck_at(calls, engine=None):
    return next((at for _, severity, at in verdicts(calls, engine) if severity == "stuck"), None)

"""The captured spans read as if nobody had declared their dialects: what the conventions alone make of them."""

import functools
from collections import Counter
from contextlib import contextmanager

from tests.sources.spans.corpus import WAYS, batches, cases, measure, wrong_in

from turnwatch.sources.spans import dialect, shapes

# What shows which convention the spans of a case follow; the first that is there counts.
CONVENTIONS = {
    "openinference.span.kind": "OpenInference",
    "traceloop.span.kind": "Traceloop",
    "langfuse.observation.type": "Langfuse",
    "langsmith.span.kind": "LangSmith",
    "ai.operationId": "Vercel AI",
    "mlflow.spanType": "MLflow",
    "haystack.component.type": "Haystack",
    "haystack.agent.step": "Haystack",
    "mcp.method.name": "MCP",
    "gen_ai.operation.name": "OpenTelemetry GenAI",
}


@contextmanager
def no_declarations():
    """Within this, no scope is known and no marker, only the conventions."""
    scopes, starts, markers = dict(dialect._BY_SCOPE), dialect._BY_SCOPE_START, dialect._BY_MARKER
    dialect._BY_SCOPE.clear()
    dialect._BY_SCOPE_START = dialect._BY_MARKER = ()
    _forget()
    try:
        yield
    finally:
        dialect._BY_SCOPE.update(scopes)
        dialect._BY_SCOPE_START, dialect._BY_MARKER = starts, markers
        _forget()


def _forget():
    dialect.dialect_of_scope.cache_clear()
    dialect.standing_of.cache_clear()
    shapes._shapes.clear()


def convention(case):
    """The convention that a case follows; None where no span follows any."""
    there = {name for batch in batches(case, "sdk-json") for span in batch for name in span.attributes}
    return next((family for marker, family in CONVENTIONS.items() if marker in there), None)


@functools.cache
def right():
    """By convention: in how many cases every number that the spans carry is right all the same, and of how many."""
    right, of = Counter(), Counter()
    with no_declarations():
        for case in cases():
            family = convention(case)
            if family is None:
                continue
            of[family] += 1
            right[family] += all(
                not wrong_in(case, measure(batches(case, way)).numbers) for way in WAYS if case.files(way)
            )
    return {family: (right[family], of[family]) for family in dict.fromkeys(CONVENTIONS.values())}

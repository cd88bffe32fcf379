"""What a PromQL expression asks for, and whether turnwatch exports it."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from turnwatch.errors import MissingExtraError
from turnwatch.metrics.catalogue import BY_NAME, CATALOGUE, Metric

OWN_LABELS: Final = frozenset(label for metric in CATALOGUE for label in metric.labels)
"""Labels that turnwatch sets. Any other label may come from the target, so nothing is said about it."""

GRAFANA_VARIABLES: Final = {"$__rate_interval": "5m", "$__interval": "1m", "$__range": "1h"}
_PARTS: Final = {"counter": ("_created",), "histogram": ("_bucket", "_sum", "_count", "_created"), "gauge": ()}


class QueryError(ValueError):
    """An expression that is not PromQL."""


def metrics_of(expr: str) -> set[str]:
    """Return the names of the series that ``expr`` selects.

    Raises:
        QueryError: It is not PromQL.
        MissingExtraError: The ``promql-parser`` package is missing.
    """
    return {selector.name for selector in _selectors(_parsed(expr)) if selector.name}


def metric_behind(series: str) -> Metric | None:
    """Return the metric of the catalogue that a series such as ``agent_iterations_bucket`` belongs to."""
    if series in BY_NAME:
        return BY_NAME[series]
    for metric in CATALOGUE:
        base = metric.name.removesuffix("_total")
        if series in {base + part for part in _PARTS[metric.type]}:
            return metric
    return None


def faults_of(expr: str, *, recorded: frozenset[str] = frozenset()) -> list[str]:
    """Return what is wrong with ``expr``: not PromQL, unknown series, labels that a metric does not have.

    Args:
        expr: PromQL; Grafana's interval variables may stand in it.
        recorded: Names that recording rules make.

    Raises:
        MissingExtraError: The ``promql-parser`` package is missing.
    """
    try:
        tree = _parsed(expr)
    except QueryError as error:
        return [str(error)]
    faults = []
    for selector in _selectors(tree):
        name = selector.name or ""
        metric = metric_behind(name)
        if metric is None:
            if name not in recorded and (":" in name or name.startswith(("agent_", "turnwatch_"))):
                faults.append(f"no such metric: {name}")
            continue
        faults += [
            f"{name} has no label {label}"
            for label in sorted({matcher.name for matcher in selector.matchers.matchers} & OWN_LABELS)
            if label not in metric.labels
        ]
    for labels, below in _groupings(tree):
        metrics = [metric_behind(selector.name or "") for selector in _selectors(below)]
        known = [metric for metric in metrics if metric is not None]
        if known and len(known) == len(metrics):
            there = {label for metric in known for label in metric.labels}
            faults += [f"grouped by {label}, which no series below has" for label in sorted(labels - there)]
    return faults


def literal_bucket_bounds(expr: str) -> bool:
    """Say whether ``expr`` matches a literal ``le``, which reads 8 or 8.0 by exporter and Prometheus version."""
    parser = _promql()
    return any(
        matcher.name == "le" and matcher.op == parser.MatchOp.Equal and matcher.value != "+Inf"
        for selector in _selectors(_parsed(expr))
        for matcher in selector.matchers.matchers
    )


def _parsed(expr: str) -> Any:
    for variable, value in GRAFANA_VARIABLES.items():
        expr = expr.replace(variable, value)
    try:
        return _promql().parse(expr)
    except ValueError as error:
        raise QueryError(f"not PromQL: {error}") from None


def _selectors(node: Any) -> Iterator[Any]:
    for below in _walk(node):
        if hasattr(below, "vector_selector"):
            yield below.vector_selector
        elif hasattr(below, "matchers"):
            yield below


def _groupings(node: Any) -> Iterator[tuple[frozenset[str], Any]]:
    parser = _promql()
    for below in _walk(node):
        modifier = below.modifier if isinstance(below, parser.AggregateExpr) else None
        if modifier is not None and modifier.type == parser.AggModifierType.By:
            yield frozenset(modifier.labels) & OWN_LABELS, below.expr


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for field in ("expr", "lhs", "rhs"):
        if (below := getattr(node, field, None)) is not None:
            yield from _walk(below)
    for argument in getattr(node, "args", ()):
        yield from _walk(argument)


def _promql() -> ModuleType:
    try:
        import promql_parser
    except ImportError:
        raise MissingExtraError("checking queries", "pack") from None
    return promql_parser

"""How the series of many replicas become one value for each agent or tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnwatch.top.quantities import BY_METRIC, LEVELS, VERDICTS, VERDICTS_CREATED
from turnwatch.top.reading import Group, Sample, Table

_LEVELS = frozenset(quantity.metric for quantity in LEVELS)


def levels_of(samples: Iterable[Sample]) -> Table:
    """The gauges among ``samples``, folded."""
    levels: Table = {}
    for sample in samples:
        if sample.name in _LEVELS:
            put(levels, sample.name, BY_METRIC[sample.name].group_of(sample.labels), sample.value)
    return levels


def put(table: Table, metric: str, group: Group | None, value: float) -> None:
    """Add one value to the table the way its metric folds."""
    if group is None:
        return
    column = table.setdefault(metric, {})
    before = column.get(group)
    if before is None:
        column[group] = value
    else:
        column[group] = before + value if BY_METRIC[metric].fold == "sum" else max(before, value)


def merged(tables: Iterable[Table]) -> Table:
    """Several sources' tables as one."""
    whole: Table = {}
    for table in tables:
        for metric, column in table.items():
            for group, value in column.items():
                put(whole, metric, group, value)
    return whole


def totals_of(samples: Iterable[Sample]) -> Table:
    """What the counters of verdicts stand at."""
    totals: Table = {}
    for sample in samples:
        if sample.name == VERDICTS:
            put(totals, VERDICTS, BY_METRIC[VERDICTS].group_of(sample.labels), sample.value)
    return totals


def begun_of(samples: Sequence[Sample]) -> dict[Group, tuple[float, float]]:
    """For each group of verdicts when its youngest series began, and how many verdicts there are."""
    began: dict[Group, float] = {}
    for sample in samples:
        group = BY_METRIC[VERDICTS].group_of(sample.labels) if sample.name == VERDICTS_CREATED else None
        if group is not None:
            began[group] = max(began.get(group, 0.0), sample.value)
    counts = totals_of(samples).get(VERDICTS, {})
    return {group: (began[group], count) for group, count in counts.items() if count and group in began}

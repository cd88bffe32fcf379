"""How the series of many replicas become one value for each agent or tool."""

from __future__ import annotations

from collections.abc import Iterable

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


def begun_of(samples: Iterable[Sample]) -> dict[Group, tuple[float, float]]:
    """For each group of verdicts when its youngest series began, and how many verdicts there are."""
    quantity = BY_METRIC[VERDICTS]
    began: dict[Group, float] = {}
    counts: dict[Group, float] = {}
    for sample in samples:
        if sample.name not in (VERDICTS, VERDICTS_CREATED):
            continue
        group = quantity.group_of(sample.labels)
        if group is None:
            continue
        if sample.name == VERDICTS_CREATED:
            began[group] = max(began.get(group, 0.0), sample.value)
        else:
            counts[group] = counts.get(group, 0.0) + sample.value
    return {group: (began[group], count) for group, count in counts.items() if count and group in began}

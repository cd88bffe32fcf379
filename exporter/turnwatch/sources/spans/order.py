"""The order in which the spans of a batch are read."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from turnwatch.sources.spans.span import MILLISECOND_NS, PassingSpans, SpanData


def as_they_ended(spans: Iterable[SpanData | PassingSpans]) -> Iterable[SpanData | PassingSpans]:
    """A batch in the order in which its spans ended, and every span behind the ones inside it.

    OTLP groups the spans of a request by instrumentation. Where several tell of one turn, a tool call would
    come before the reply that asked for it, and a span before the ones inside it. A clock that is read twice
    may have a span end a little before the last one inside it.
    """
    batch = list(spans)
    if len(batch) == 1:
        return batch
    scopes: set[str] = set()
    ended: dict[int, int] = {}
    is_in_order = True
    latest = 0
    for span in batch:
        if type(span) is SpanData:
            scopes.add(span.scope)
            ended[span.span_id] = end = span.end_ns
            # JavaScript's clock gives whole milliseconds for starts, and ends by them: an end may be off by as much.
            slack = 0 if span.start_ns % MILLISECOND_NS else MILLISECOND_NS
            if end + slack < latest or ended.get(span.parent_id, end) < end:
                is_in_order = False
            latest = end
    if is_in_order and len(scopes) <= 1:
        return batch
    parents = {span.span_id: span.parent_id for span in batch if type(span) is SpanData}
    for span_id in sorted(ended, key=ended.__getitem__, reverse=True):  # so that no end is raised twice
        end, parent = ended[span_id], parents[span_id]
        while ended.get(parent, end) < end:
            ended[parent] = end
            parent = parents[parent]
    # Of those that ended at once the one that started last is inside the others.
    batch.sort(key=lambda span: (ended[span.span_id], -span.start_ns) if type(span) is SpanData else (inf, 0))
    return batch

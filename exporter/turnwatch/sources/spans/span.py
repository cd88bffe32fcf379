"""A span as every reader hands it on, whatever carried it here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, final

from turnwatch.sources.spans.shapes import shape_of

SERVER: Final = 2
CLIENT: Final = 3

MILLISECOND_NS: Final = 1_000_000
SMALL_SPAN_BYTES: Final = 1024
NO_EVENTS: Final[tuple[SpanEvent, ...]] = ()
NO_ATTRIBUTES: Final[Mapping[str, Any]] = {}


@final
class SpanEvent:
    """One event of a span."""

    __slots__ = ("attributes", "name")

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        self.name = name
        self.attributes = attributes


@final
class SpanData:
    """One ended span.

    Attributes:
        trace_id, span_id: Ids as numbers. parent_id is 0 for a root.
        name: The span's name.
        kind: The number OTLP gives the kind (2 is SERVER, 3 is CLIENT); 0 when unknown.
        scope: Name of the instrumentation scope.
        attributes: Values as Python objects.
        resource: The resource's attributes.
        events: The span's events.
        start_ns, end_ns: Nanoseconds since the epoch; an end of 0 means the span is not over.
        failed: The status is ERROR.
        status_text: The status description.
        line: Where it stands in the file that it was read from (1-based); None when it comes from no line of a file.
        shape: What its attributes can say.
    """

    __slots__ = (
        "attributes",
        "end_ns",
        "events",
        "failed",
        "kind",
        "line",
        "name",
        "parent_id",
        "resource",
        "scope",
        "shape",
        "span_id",
        "start_ns",
        "status_text",
        "trace_id",
    )

    def __init__(
        self,
        trace_id: int,
        span_id: int,
        parent_id: int = 0,
        name: str = "",
        kind: int = 0,
        scope: str = "",
        attributes: Mapping[str, Any] = NO_ATTRIBUTES,
        resource: Mapping[str, Any] = NO_ATTRIBUTES,
        events: tuple[SpanEvent, ...] | list[SpanEvent] = NO_EVENTS,
        start_ns: int = 0,
        end_ns: int = 0,
        failed: bool = False,
        status_text: str = "",
    ) -> None:
        self.trace_id = trace_id
        self.span_id = span_id
        self.parent_id = parent_id
        self.name = name
        self.kind = kind
        self.scope = scope
        self.attributes = attributes
        self.resource = resource
        self.events = events
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.failed = failed
        self.status_text = status_text
        self.shape = shape_of(scope, attributes)
        self.line: int | None = None

    @property
    def weight(self) -> int:
        """About how many bytes it takes: its longer texts, and as much again as a small span takes in all."""
        weight = SMALL_SPAN_BYTES + weight_of(self.attributes.values())
        for event in self.events:
            weight += weight_of(event.attributes.values())
        return weight


def weight_of(values: Iterable[object]) -> int:
    """About how many bytes the longer ones of these values take."""
    weight = 0
    for value in values:
        if type(value) is str:
            weight += len(value)
        elif isinstance(value, (list, dict, bytes)):
            weight += len(repr(value))
    return weight


class Messages(Protocol):
    """Spans that are not decoded yet."""

    def __len__(self) -> int:
        """How many they are."""

    def __iter__(self) -> Iterator[Any]:
        """Each of them."""


@final
class PassingSpans:
    """Spans that play no part themselves and are not decoded: calls may hang under them."""

    __slots__ = ("_decode", "_messages")

    def __init__(self, messages: Messages, decode: Callable[[Any], SpanData]) -> None:
        self._messages = messages
        self._decode = decode

    def __len__(self) -> int:
        return len(self._messages)

    def among(self, awaited: Collection[int]) -> Iterator[SpanData]:
        """Those of them that somebody waits for, as far as they matter for spans below them.

        ``awaited`` is asked again for every span: it may change meanwhile.
        """
        for message in self._messages if awaited else ():
            if int.from_bytes(message.span_id, "big") in awaited:
                yield self._decode(message)

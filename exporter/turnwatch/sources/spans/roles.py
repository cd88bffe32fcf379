"""What part a span plays: agent, model call, tool call, or only a step between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from turnwatch.sources.spans.dialect import CONVENTIONS, Dialect, Role, standing_of
from turnwatch.sources.spans.span import SpanData

# A span of no known scope is of interest when it has one of these attributes or names.
MARKERS: Final = CONVENTIONS.markers
NAMES: Final = CONVENTIONS.names


def is_of_interest(scope: str, name: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a span can play a part at all. Cheap: most spans that pass through are somebody else's."""
    standing = standing_of(scope)
    if standing is None:
        return name in NAMES or not MARKERS.isdisjoint(attributes)
    return standing == "known"


def role_of(span: SpanData, dialect: Dialect) -> Role:
    """The part a span plays. A span that says nothing of itself is a step."""
    if dialect.streams_apart and not (span.failed or span.shape.response_id or span.shape.output):
        return "step"  # the request of a reply that is streamed
    if dialect.names is not None:
        role = dialect.names.role_of(span.name)
        if role is not None:
            return role
    attributes = span.attributes
    for attribute, patterns in span.shape.roles:
        value = attributes.get(attribute)
        if value is not None:
            role = patterns.whole.get(value) if type(value) is str else None
            if role is None:
                role = patterns.role_of(str(value))
            if role is not None:
                return role
    return NAMES.get(span.name, "step")


def says_its_role(span: SpanData, dialect: Dialect) -> bool:
    """Whether a span that is still open already says what it is: many set what tells it only at their end."""
    if dialect.names is not None and dialect.names.role_of(span.name) is not None:
        return True
    return span.name in NAMES or bool(span.shape.roles)

"""What is worked out once for spans of one look is what each of them says."""

import pytest
from tests.sources.spans.corpus import batches, cases

from turnwatch.sources.spans import shapes
from turnwatch.sources.spans.dialect import CONVENTIONS
from turnwatch.sources.spans.roles import is_of_interest
from turnwatch.sources.spans.shapes import shape_of
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.spans.values import first

LISTS = {
    **{f"tool.{kind}": CONVENTIONS.tool[kind] for kind in ("arguments", "result", "call_id", "input_hash")},
    "tool.tool_name": CONVENTIONS.tool["name"],
    "model.model_name": CONVENTIONS.model["name"],
    **{f"model.{kind}": CONVENTIONS.model[kind] for kind in ("provider", "response_id")},
    "agent.agent_name": CONVENTIONS.agent["name"],
    "agent.conversation": CONVENTIONS.agent["conversation"],
    **{f"usage.{kind}": CONVENTIONS.usage[kind] for kind in ("input", "output", "cache_read", "cache_write")},
    "usage.reasoning": CONVENTIONS.usage["reasoning"],
}
# What a dialect has under a name of its own.
OWN = {
    "tool.tool_name": "tool_name_in",
    "tool.arguments": "arguments_in",
    "tool.result": "result_in",
    "agent.conversation": "conversation_in",
}


@pytest.fixture(scope="module")
def captured():
    """Every captured span."""
    return [
        span for case in cases() for batch in batches(case, "sdk-json") for span in batch if isinstance(span, SpanData)
    ]


@pytest.mark.parametrize("fact", LISTS)
def test_a_fact_is_found_where_asking_for_every_name_finds_it(captured, fact):
    found = 0
    for span in captured:
        own = (getattr(span.shape.dialect, OWN[fact]),) if fact in OWN else ()
        value = first(span.attributes, (*own, *LISTS[fact]))
        assert first(span.attributes, getattr(span.shape, fact.split(".")[1])) == value
        found += value is not None
    assert found or fact == "tool.input_hash"  # the seed's own, which no captured dialect writes


def test_what_is_of_interest_by_its_shape_or_name_is_of_interest(captured):
    for span in captured:
        shape = span.shape
        by_shape = shape.is_of_interest or (not shape.is_unrelated and span.name in CONVENTIONS.names)
        assert by_shape == is_of_interest(span.scope, span.name, span.attributes)


def test_a_model_span_without_a_shape_for_messages_has_none(captured):
    without = [span for span in captured if not span.shape.has_messages]
    assert without
    for span in without:
        names = [name for name in span.attributes if not name.startswith("metadata.")]
        assert not [name for name in names if ".messages" in name or "finish" in name]


def test_other_attributes_and_the_order_make_no_other_shape():
    one = shape_of("my.agents", {"gen_ai.tool.name": "a", "gen_ai.operation.name": "execute_tool"})
    other = shape_of(
        "my.agents", {"gen_ai.operation.name": "chat", "llm.input_messages.17.x": 1, "gen_ai.tool.name": ""}
    )
    assert one is other


def test_shapes_are_bounded():
    for number in range(3 * shapes._MAX_SHAPES):
        shape_of(f"scope {number}", {})
    assert len(shapes._shapes) <= shapes._MAX_SHAPES

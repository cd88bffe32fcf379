"""Tokens of model calls whose output leaves the thinking out."""

import pytest

from turnwatch.core.events import Usage
from turnwatch.sources.spans.shapes import shape_of
from turnwatch.sources.spans.usage import usage_of


def usage(model, **counts):
    names = {
        "input": "gen_ai.usage.input_tokens",
        "output": "gen_ai.usage.output_tokens",
        "total": "gen_ai.usage.total_tokens",
        "reasoning": "gen_ai.usage.completion_tokens_details.reasoning_tokens",
    }
    attributes = {names[name]: count for name, count in counts.items()} | {"gen_ai.response.model": model}
    return usage_of(attributes, shape_of("opentelemetry.instrumentation.google_generativeai", attributes))


def test_what_gemini_thought_is_output_where_only_the_total_holds_it():
    assert usage("gemini-2.5-flash", input=100, output=12, total=115) == Usage(100, 15, reasoning=3)
    assert usage("models/gemini-2.5-pro", input=100, total=115) == Usage(100, 15, reasoning=15)


def test_thinking_that_is_counted_apart_is_added_once():
    assert usage("gemini-2.5-flash", input=100, output=12, reasoning=3, total=115) == Usage(100, 15, reasoning=3)


@pytest.mark.parametrize("total", [115, 0, -1, "many", 90])
def test_output_that_holds_the_thinking_stays_as_it_is(total):
    assert usage("gemini-2.5-flash", input=100, output=15, total=total) == Usage(100, 15)


def test_results_of_googles_own_tools_in_the_total_are_no_thinking():
    assert usage("gemini-2.5-flash", input=100, output=12, reasoning=3, total=165) == Usage(100, 15, reasoning=3)


def test_another_models_total_says_nothing_of_its_output():
    assert usage("claude-sonnet-4-5", input=100, output=12, total=150) == Usage(100, 12)

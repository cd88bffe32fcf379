"""Tokens of model calls whose output leaves the thinking out, or that stand inside the reply."""

import json

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


def in_a_reply(name, scope, reply, **counts):
    attributes = {name: json.dumps(reply)} | counts
    return usage_of(attributes, shape_of(scope, attributes))


@pytest.mark.parametrize("total", [115, 0])
def test_a_reply_of_genkits_counts_beside_it(total):
    counts = {"inputTokens": 100, "outputTokens": 12, "thoughtsTokens": 3, "totalTokens": total}
    reply = {"usage": counts | {"cachedContentTokens": 40}}
    made = 15 if total else 12
    assert in_a_reply("genkit:output", "genkit-tracer", reply) == Usage(100, made, cache_read=40, reasoning=3)


def test_what_genkit_leaves_out_stands_in_the_providers_own_reply():
    raw = {"usage": {"prompt_tokens": 100, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 40}}}
    reply = {"usage": {"inputTokens": 100, "outputTokens": 12}, "raw": raw}
    assert in_a_reply("genkit:output", "genkit-tracer", reply) == Usage(100, 12, cache_read=40)


@pytest.mark.parametrize("reply", ["no object", [], {"usage": 3}, {"usage": {}}, {"usage": {"inputTokens": "many"}}])
def test_a_reply_without_counts_has_no_usage(reply):
    assert in_a_reply("genkit:output", "genkit-tracer", reply) is None


@pytest.mark.parametrize("output", [12, 15])
def test_a_reply_of_geminis_in_adks_span_tells_what_was_thought_and_what_was_cached(output):
    counts = {"candidatesTokenCount": 12, "thoughtsTokenCount": 3, "cachedContentTokenCount": 40}
    given = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": output}
    found = in_a_reply("gcp.vertex.agent.llm_response", "gcp.vertex.agent", {"usageMetadata": counts}, **given)
    assert found == Usage(100, 15, cache_read=40, reasoning=3)

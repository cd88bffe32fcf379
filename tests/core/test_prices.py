"""A call's dollars are exact to the published price, and a price that is not known is never zero."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices import Usage as PublishedUsage
from genai_prices import data_snapshot

from turnwatch.core import prices as prices_module
from turnwatch.core import published_prices
from turnwatch.core.events import Usage
from turnwatch.core.prices import PriceBook

# USD per million tokens as the providers publish them: input, output, cache read, cache write.
PUBLISHED = [
    ("anthropic", "claude-sonnet-4-5", "3", "15", "0.30", "3.75"),
    ("anthropic", "claude-haiku-4-5", "1", "5", "0.10", "1.25"),
    ("anthropic", "claude-3-5-haiku-20241022", "0.80", "4", "0.08", "1.00"),
    ("anthropic", "claude-opus-4-1", "15", "75", "1.50", "18.75"),
    ("openai", "gpt-4o", "2.50", "10", "1.25", None),
    ("openai", "gpt-4o-mini", "0.15", "0.60", "0.075", None),
    ("openai", "gpt-4.1", "2", "8", "0.50", None),
    ("openai", "gpt-4.1-mini", "0.40", "1.60", "0.10", None),
    ("openai", "gpt-5", "1.25", "10", "0.125", None),
    ("openai", "gpt-5-mini", "0.25", "2", "0.025", None),
    ("openai", "o4-mini", "1.10", "4.40", "0.275", None),
    ("google", "gemini-2.5-flash", "0.30", "2.50", "0.03", None),
    ("google", "gemini-2.5-flash-lite", "0.10", "0.40", "0.01", None),
    ("groq", "llama-3.3-70b-versatile", "0.59", "0.79", None, None),
]


def dollars(tokens_and_prices):
    return float(sum(Decimal(tokens) * Decimal(price) for tokens, price in tokens_and_prices) / 1_000_000)


@pytest.fixture(scope="module")
def book():
    return PriceBook()


@pytest.mark.parametrize(("provider", "model", "input", "output", "read", "write"), PUBLISHED)
def test_dollars_are_exact_to_the_published_price(book, provider, model, input, output, read, write):
    usage = Usage(input=12_345, output=6_789, cache_read=4_321, cache_write=1_001)

    expected = dollars(
        [
            (12_345 - 4_321 - 1_001, input),
            (6_789, output),
            (4_321, read or input),
            (1_001, write or input),
        ]
    )
    assert book.cost(provider, model, usage) == expected
    # the maker's price where only the name is known; llama has no maker that sells it
    assert book.cost("", model, usage) == (None if provider == "groq" else expected)


def test_a_long_prompt_is_billed_at_the_tier_it_reaches(book):
    at_the_threshold = book.cost("google", "gemini-2.5-pro", Usage(200_000, 1_000))
    past_it = book.cost("google", "gemini-2.5-pro", Usage(200_001, 1_000))

    assert at_the_threshold == dollars([(200_000, "1.25"), (1_000, "10")])
    assert past_it == dollars([(200_001, "2.50"), (1_000, "15")])


def test_cached_tokens_beside_the_input_are_added_to_it(book):
    beside = book.cost("anthropic", "claude-sonnet-4-5", Usage(10, 0, cache_read=1_000, cache_write=100))

    assert beside == dollars([(10, "3"), (1_000, "0.3"), (100, "3.75")])


def test_the_price_is_that_of_the_requests_time(book):
    usage = Usage(1_000_000, 1_000_000)

    def at(hour, minute):
        return book.cost("deepseek", "deepseek-chat", usage, datetime(2025, 6, 2, hour, minute, tzinfo=UTC).timestamp())

    # deepseek-chat: full price from 00:30 to 16:30 UTC, half price otherwise
    assert at(0, 29) < at(0, 30) == at(16, 29) > at(16, 30) == at(0, 29)


@pytest.mark.parametrize(
    ("provider", "model", "same_as"),
    [
        ("azure.ai.openai", "gpt-4o", ("openai", "gpt-4o")),
        ("x_ai", "grok-4", ("x-ai", "grok-4")),
        ("gcp.gen_ai", "gemini-2.5-pro", ("google", "gemini-2.5-pro")),
        ("gcp.gemini", "models/gemini-2.5-pro", ("google", "gemini-2.5-pro")),
        ("gcp.vertex_ai", "publishers/google/models/gemini-2.5-pro", ("google", "gemini-2.5-pro")),
        (
            "gcp.vertex_ai",
            "projects/p/locations/us/publishers/google/models/gemini-2.5-pro",
            ("google", "gemini-2.5-pro"),
        ),
        ("gcp.vertex_ai", "claude-sonnet-4-5@20250929", ("google", "claude-sonnet-4-5")),
        ("azure.ai.inference", "gpt-4o", ("openai", "gpt-4o")),
        ("ibm.watsonx.ai", "mistral-large-latest", ("mistral", "mistral-large-latest")),
        ("my-gateway", "gpt-4o", ("openai", "gpt-4o")),
        ("openai", "openai/gpt-4o", ("openai", "gpt-4o")),
        ("", "openai/gpt-4o", ("openai", "gpt-4o")),
        ("openai", "anthropic/claude-sonnet-4-5", ("anthropic", "claude-sonnet-4-5")),
        ("openai", "claude-sonnet-4-5", ("anthropic", "claude-sonnet-4-5")),
        ("anthropic", "claude-sonnet-4-5-20250929", ("anthropic", "claude-sonnet-4-5")),
        ("openai", "gpt-4.1-2025-04-14", ("openai", "gpt-4.1")),
        ("", "openrouter/anthropic/claude-sonnet-4.5", ("openrouter", "anthropic/claude-sonnet-4.5")),
        ("", "groq/openai/gpt-oss-120b", ("groq", "openai/gpt-oss-120b")),
        (
            "",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            ("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ),
        (
            "aws.bedrock",
            "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            ("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ),
        ("", "bedrock/amazon.nova-pro-v1:0", ("aws.bedrock", "amazon.nova-pro-v1:0")),
    ],
)
def test_a_models_many_names_have_one_price(book, provider, model, same_as):
    usage = Usage(1_000, 100, cache_read=500)

    found = book.cost(provider, model, usage)
    assert found is not None
    assert found == book.cost(*same_as, usage)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("", ""), ("openai", ""), ("", "my-own-model"), ("openai", "gpt-4o-of-our-own"), ("groq", "claude-sonnet-4-5"),
     ("", "x" * 100_000), ("aws", "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a"), ("", "/"), ("", "@")],
)  # fmt: skip
def test_an_unknown_price_is_none_and_never_zero(book, provider, model):
    assert book.cost(provider, model, Usage(1_000, 1_000)) is None


def test_every_published_token_price_is_reckoned_as_genai_prices_does(book):
    at = datetime(2026, 11, 30, 12, tzinfo=UTC)
    usages = [Usage(1_000, 500), Usage(300_000, 500, 100_000, 50_000)]
    compared = 0
    for provider in data_snapshot.get_snapshot().providers:
        for model in provider.models:
            price = published_prices.PublishedPrice(model)
            for usage in usages:
                theirs = model.get_prices(at).calc_price(
                    PublishedUsage(
                        input_tokens=usage.input,
                        output_tokens=usage.output,
                        cache_read_tokens=usage.cache_read,
                        cache_write_tokens=usage.cache_write,
                    )
                )
                assert price.rates(at.timestamp()).dollars(usage) == pytest.approx(float(theirs["total_price"])), (
                    provider.id,
                    model.id,
                )
                compared += 1
    assert compared > 2_000


def usd(**prices):
    return {kind: Decimal(price) for kind, price in prices.items()}


def test_own_prices_win_and_zero_is_a_price():
    book = PriceBook(
        {
            "claude-sonnet-4-5": usd(input="1", output="2", cache_read="0.1", cache_write="4"),
            "house/llama": usd(input="0", output="0"),
            "gpt-4o": usd(input="1", output="1"),
            "azure/gpt-4o": usd(input="9", output="9"),
        }
    )
    usage = Usage(1_000_000, 1_000_000, cache_read=500_000, cache_write=100_000)

    assert book.cost("anthropic", "claude-sonnet-4-5", usage) == 2.85
    assert book.cost("anthropic", "claude-sonnet-4-5-20250929", usage) == 2.85
    assert book.cost("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", usage) == 2.85
    assert book.cost("house", "llama", usage) == 0.0
    assert book.cost("", "house/llama", usage) == 0.0
    assert book.cost("openai", "GPT-4o", usage) == 2.0
    assert book.cost("azure", "gpt-4o", usage) == 18.0
    assert book.cost("openai", "gpt-4.1", Usage(1_000_000)) == 2.0


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(prices_module, "MAX_KEPT_MODELS", 8)
    book = PriceBook()

    for number in range(50):
        assert book.cost("", f"made-up-{number}", Usage(1, 1)) is None
    assert len(book._kept) == 8
    assert book.cost("", "gpt-4o", Usage(1_000_000)) == 2.5


def test_newer_prices_are_taken_up():
    book = PriceBook()
    assert book.cost("openai", "gpt-4o", Usage(1_000_000)) == 2.5
    try:
        data_snapshot.set_custom_snapshot(data_snapshot.DataSnapshot(providers=[], from_auto_update=True))
        assert book.cost("openai", "gpt-4o", Usage(1_000_000)) is None
    finally:
        data_snapshot.set_custom_snapshot(None)
    assert book.cost("openai", "gpt-4o", Usage(1_000_000)) == 2.5


def test_without_price_data_a_price_is_not_known(monkeypatch):
    monkeypatch.setattr(prices_module, "published_snapshot", lambda: None)

    assert PriceBook().cost("openai", "gpt-4o", Usage(1, 1)) is None
    assert PriceBook({"gpt-4o": usd(input="1", output="1")}).cost("openai", "gpt-4o", Usage(1_000_000)) == 1.0


def test_a_fault_in_the_price_data_is_a_price_not_known(monkeypatch):
    def fail(*_):
        raise ValueError

    monkeypatch.setattr(prices_module, "find_published_price", fail)

    assert PriceBook().cost("openai", "gpt-4o", Usage(1, 1)) is None
    assert PriceBook().cost("openai", "gpt-4o", Usage(1, 1), at=float("nan")) is None

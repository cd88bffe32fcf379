import pytest

from turnwatch.core.providers import provider_by_name


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-sonnet-4-5", "anthropic"),
        ("anthropic/claude-haiku-4-5", "anthropic"),
        ("GPT-4o", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("openai/gpt-5", "openai"),
        ("gemini-2.5-flash", "gcp.gemini"),
        ("models/gemini-2.5-pro", "gcp.gemini"),
        ("mistral-large-latest", "mistral_ai"),
        ("deepseek-chat", "deepseek"),
        ("grok-4", "x_ai"),
        ("command-r-plus", "cohere"),
        ("sonar", "perplexity"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws.bedrock"),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-v2", "aws.bedrock"),
        ("projects/p/locations/l/publishers/google/models/gemini-2.5-flash", "gcp.vertex_ai"),
        ("azure/gpt-4o", "azure.ai.openai"),
    ],
)
def test_a_models_name_tells_who_serves_it(model, provider):
    assert provider_by_name(model) == provider


@pytest.mark.parametrize("model", ["", "llama-3.3-70b", "qwen3-coder", "my-model", "oracle", "mistralish"])
def test_what_anybody_may_serve_has_no_provider(model):
    assert provider_by_name(model) == ""

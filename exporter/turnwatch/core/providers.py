"""Who serves a model, where only its name is known?"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# The ids are those of the GenAI conventions (gen_ai.provider.name). Hosts come before makers: Bedrock's and Vertex's
# names hold the maker's. Models that anybody may serve, Llama and Qwen among them, are in neither list.
_SERVED_BY: Final = (
    (re.compile(r"arn:[^:]*:bedrock|bedrock/|(?:[a-z-]+\.)?(?:anthropic|amazon|meta|mistral|cohere)\."), "aws.bedrock"),
    (re.compile(r"projects/|publishers/|vertex_ai/"), "gcp.vertex_ai"),
    (re.compile(r"azure/"), "azure.ai.openai"),
    (re.compile(r"groq/"), "groq"),
    (re.compile(r"(?:anthropic/)?claude-"), "anthropic"),
    (re.compile(r"(?:openai/)?(?:gpt-|chatgpt-|o\d(?:-|$)|codex-)"), "openai"),
    (re.compile(r"(?:models/|gemini/|google/)?gemini-"), "gcp.gemini"),
    (re.compile(r"(?:mistral/|mistralai/)?(?:mistral|ministral|magistral|codestral|devstral|pixtral)-"), "mistral_ai"),
    (re.compile(r"(?:deepseek/)?deepseek-"), "deepseek"),
    (re.compile(r"(?:xai/|x-ai/)?grok-"), "x_ai"),
    (re.compile(r"(?:cohere/)?command-"), "cohere"),
    (re.compile(r"(?:perplexity/)?sonar(?:-|$)"), "perplexity"),
)


@lru_cache(maxsize=1024)  # asked at every call, of few models
def provider_by_name(model: str) -> str:
    """The GenAI conventions' id of the provider that most likely serves a model of this name; "" when none does."""
    name = model.strip().lower()
    return next((provider for pattern, provider in _SERVED_BY if pattern.match(name)), "")

"""Under which names a price list may know a model.

Sources decorate model names: LiteLLM and proxies put the provider before it, Bedrock uses ids and ARNs, Vertex an
``@`` before the date, and everybody adds release dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# Ids of the GenAI conventions and of frameworks that genai-prices does not know by that name. "" finds the
# provider by the model's name.
_PROVIDERS: Final = {
    "azure.ai.openai": "openai",
    "azure_openai": "azure",
    "azureopenai": "azure",
    "azure_ai": "",
    "azure.ai.inference": "",
    "az.ai.openai": "openai",
    "az.ai.inference": "",
    "gcp.gen_ai": "",
    "ibm.watsonx.ai": "",
    "x_ai": "x-ai",
    "moonshot_ai": "moonshotai",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "litellm": "",
    "litellm_proxy": "",
    "openai_compatible": "",
}

# Clients of the OpenAI interface report openai whatever answers behind it.
_INTERFACES: Final = frozenset({"openai", ""})

_RESOURCE: Final = re.compile(r"^(?:projects/[^/]+/locations/[^/]+/)?publishers/([^/]+)/models/")
_BEDROCK_ARN: Final = re.compile(r"^arn:[^:]*:(?:bedrock|sagemaker)[^:]*:")
_BEDROCK_ID: Final = re.compile(
    r"^(?:[a-z]{2}(?:-gov)?\.|apac\.|global\.)?"
    r"(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen|writer|stability|moonshot|minimax|google|nvidia)\."
)
_DATE: Final = re.compile(r"[-@:](?:20\d{6}|20\d\d-\d\d-\d\d|latest)$")
_PREFIXES: Final = ("models/", "openai/", "anthropic/", "google/", "mistralai/", "deepseek/", "x-ai/", "cohere/")


def spellings(provider: str, model: str) -> Iterator[tuple[str, str]]:
    """(provider, model) pairs to look for, the surest first; provider "" is to be found by the model's name."""
    seen = set()
    for pair in _undated(_decorated(provider.strip().lower(), model.strip())):
        if pair not in seen and pair[1]:
            seen.add(pair)
            yield pair


def bare_names(provider: str, model: str) -> Iterator[str]:
    """The names alone, lower case, the most decorated first."""
    seen = {""}
    for _, name in spellings(provider, model):
        plain = _without_bedrock(name)
        for candidate in (name, plain, _DATE.sub("", plain)):
            folded = candidate.lower()
            if folded not in seen:
                seen.add(folded)
                yield folded


def _undated(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Every name as it is, and then, if nothing fits, every name without its date."""
    dated = list(pairs)
    yield from dated
    for provider, model in dated:
        shorter = _DATE.sub("", model)
        if shorter != model:
            yield provider, shorter


def _decorated(provider: str, model: str) -> Iterator[tuple[str, str]]:
    known = _PROVIDERS.get(provider, provider)
    if _BEDROCK_ARN.match(model):
        known, model = "aws", model.rpartition("/")[2]
    yield known, model
    resource = _RESOURCE.match(model)
    if resource:
        model = model[resource.end() :]
        known = known or "google"
        yield known, model
    while True:
        if "@" in model and not model.startswith("@"):
            yield known, model.replace("@", "-")
        if _BEDROCK_ID.match(model):
            yield "aws", model
        first, slash, rest = model.partition("/")
        if not slash or not rest:
            break
        if known in _INTERFACES and f"{first}/" != "models/":
            # openrouter/anthropic/claude-sonnet-4.5, azure/gpt-4o: the first part says who bills
            yield _PROVIDERS.get(first.lower(), first.lower()), rest
        elif f"{first.lower()}/" not in _PREFIXES and _PROVIDERS.get(first.lower(), first.lower()) != known:
            break
        model = rest
        yield known, model
    if known in _INTERFACES:
        yield "", model


def _without_bedrock(model: str) -> str:
    """us.anthropic.claude-sonnet-4-5-20250929-v1:0 -> claude-sonnet-4-5-20250929."""
    found = _BEDROCK_ID.match(model)
    return re.sub(r"-v\d+(?::\d+)?$", "", model[found.end() :]) if found else model

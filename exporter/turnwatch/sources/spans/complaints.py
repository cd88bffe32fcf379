"""What a source does not carry, said once, with the attribute or switch that puts it there and the page about it."""

from __future__ import annotations

import logging
from typing import Final

from turnwatch.core.printable import printable
from turnwatch.sources.spans.dialect import Dialect

logger = logging.getLogger("turnwatch")

# Instrumentations that nobody declared may be any number.
_MOST: Final = 64

_PAGES: Final = "https://github.com/turnwatch/turnwatch/blob/main/docs/frameworks"
# The page about a dialect or an instrumentation scope: that of the first word which its name contains.
_PAGE_BY_WORD: Final = {
    "@modelcontextprotocol": "mcp",
    "@": "javascript",
    "_js": "javascript",
    "typescript": "javascript",
    "mastra": "javascript",
    "genkit": "javascript",
    "voltagent": "javascript",
    "langfuse": "tracing-sdks",
    "langsmith": "tracing-sdks",
    "logfire": "tracing-sdks",
    "mlflow": "tracing-sdks",
    "traceloop_sdk": "tracing-sdks",
    "openinference_decorators": "tracing-sdks",
    "agno": "agno",
    "claude_code": "claude-agent-sdk",
    "claude_agent_sdk": "claude-agent-sdk",
    "anthropic": "anthropic",
    "crewai": "crewai",
    "dspy": "dspy",
    "google_adk": "google-adk",
    "haystack": "haystack",
    "langchain": "langchain",
    "langgraph": "langchain",
    "llama_index": "llamaindex",
    "llamaindex": "llamaindex",
    "llama-index": "llamaindex",
    "agent_framework": "microsoft",
    "semantic_kernel": "semantic-kernel",
    "autogen": "autogen",
    "beeai": "beeai",
    "deepagents": "langchain",
    "ag2": "ag2",
    "openai_agents": "openai-agents",
    "openai": "openai",
    "litellm": "openai",
    "google_genai": "openai",
    "google_ai_studio": "openai",
    "groq": "openai",
    "mistral": "openai",
    "ollama": "openai",
    "bedrock": "openai",
    "botocore": "openai",
    "cohere": "openai",
    "pydantic_ai": "pydantic-ai",
    "smolagents": "smolagents",
    "strands": "strands",
    "vercel": "vercel-ai",
    "mcp": "mcp",
}
_OWN_SPANS: Final = "own-spans"
# What no instrumentation wrote, or none that was declared.
_BY_HAND: Final = frozenset({"genai", "turnwatch"})

_ARGUMENTS_BY_HAND: Final = (
    "the attribute gen_ai.tool.call.arguments (as JSON) on a span execute_tool for each tool call, or "
    "gen_ai.output.messages on the spans of model calls"
)
_ELSEWHERE: Final = "see its documentation on capturing content"
_USAGE: Final = {
    "openinference": "the attributes llm.token_count.prompt and llm.token_count.completion",
    "vercel_ai": "the attributes ai.usage.inputTokens and ai.usage.outputTokens",
}
_USAGE_BY_CONVENTION: Final = "the attributes gen_ai.usage.input_tokens and gen_ai.usage.output_tokens"


class Complaints:
    """Remembers what was said already: once for each instrumentation, and for no more than a bounded number of them."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str, str]] = set()

    def lacks_arguments(self, dialect: Dialect, scope: str = "", service: str = "", agent: str = "") -> None:
        """Say that an instrumentation's spans come without tool arguments, and how to put them there.

        Args:
            dialect: What its spans are written in.
            scope: The instrumentation scope, where it is known.
            service: The service that the spans are of, as far as is known.
            agent: The agent that made the call, as far as is known.
        """
        if self._is_new("arguments", dialect, scope):
            logger.warning(
                "Spans of %s come without tool arguments%s, so repeated calls cannot be told in its turns. "
                "What puts arguments on its spans: %s. %s",
                _called(dialect, scope),
                _seen_in(service, agent),
                dialect.switch or (_ARGUMENTS_BY_HAND if dialect.name in _BY_HAND else _ELSEWHERE),
                page_about(dialect.name, scope),
            )

    def lacks_usage(self, dialect: Dialect, scope: str = "", service: str = "", agent: str = "") -> None:
        """Say that no span of a turn told how many tokens its model calls took, and where spans say so.

        Args:
            dialect: See ``lacks_arguments``.
            scope: See there.
            service: See there.
            agent: See there.
        """
        if self._is_new("usage", dialect, scope):
            family = next((attributes for start, attributes in _USAGE.items() if dialect.name.startswith(start)), None)
            logger.warning(
                "Spans of %s come without token counts%s, so neither tokens nor dollars are counted in its turns. "
                "Read are %s on the span of a model call; a reply that is streamed often has its counts only if the "
                'request asks for them (OpenAI: stream_options={"include_usage": True}). %s',
                _called(dialect, scope),
                _seen_in(service, agent),
                family or _USAGE_BY_CONVENTION,
                page_about(dialect.name, scope),
            )

    def _is_new(self, what: str, dialect: Dialect, scope: str) -> bool:
        about = (what, dialect.name, scope)
        if about in self._said or len(self._said) >= _MOST:
            return False
        self._said.add(about)
        return True


def page_about(dialect: str, scope: str = "") -> str:
    """The address of the page about an instrumentation; of their list, where no page is about it."""
    for word, page in _PAGE_BY_WORD.items():
        if word in dialect or word in scope:
            return f"{_PAGES}/{page}.md"
    return f"{_PAGES}/{_OWN_SPANS if dialect in _BY_HAND else 'README'}.md"


def _called(dialect: Dialect, scope: str) -> str:
    return printable(f"{dialect.name} ({scope})" if scope else dialect.name)


def _seen_in(service: str, agent: str) -> str:
    known = [f"{what} {name}" for what, name in (("service", service), ("agent", agent)) if name]
    return printable(f" (first seen in {', '.join(known)})") if known else ""

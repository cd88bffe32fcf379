"""Every provider's way to report tokens comes out in one convention, and nothing is made up."""

from __future__ import annotations

from types import SimpleNamespace as Obj
from unittest.mock import MagicMock

import pytest

from turnwatch.core.events import Usage
from turnwatch.core.usage import read_model, read_provider, read_usage

REPLIES = {
    "OpenAI chat": (
        {
            "model": "gpt-4o-2024-08-06",
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
        },
        Usage(100, 20, 60, 0, 5),
    ),
    "OpenAI chat, last chunk of a stream": (
        Obj(choices=[], usage=Obj(prompt_tokens=9, completion_tokens=1, prompt_tokens_details=None)),
        Usage(9, 1),
    ),
    "OpenAI Responses": (
        Obj(
            usage=Obj(
                input_tokens=100,
                input_tokens_details=Obj(cached_tokens=40),
                output_tokens=20,
                output_tokens_details=Obj(reasoning_tokens=10),
                total_tokens=120,
            )
        ),
        Usage(100, 20, 40, 0, 10),
    ),
    "OpenAI Responses, last event of a stream": (
        {"type": "response.completed", "response": {"usage": {"input_tokens": 7, "output_tokens": 3}}},
        Usage(7, 3),
    ),
    "Anthropic": (
        Obj(
            usage=Obj(input_tokens=10, output_tokens=20, cache_read_input_tokens=1000, cache_creation_input_tokens=200)
        ),
        Usage(1210, 20, 1000, 200),
    ),
    "Anthropic, less cached than not": (
        {"usage": {"input_tokens": 500, "output_tokens": 1, "cache_read_input_tokens": 100}},
        Usage(600, 1, 100),
    ),
    "Anthropic without a cache": (
        {
            "usage": {
                "input_tokens": 10,
                "output_tokens": 2,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": None,
            }
        },
        Usage(10, 2),
    ),
    "Anthropic, first event of a stream": (
        {"type": "message_start", "message": {"usage": {"input_tokens": 25, "output_tokens": 1}}},
        Usage(25, 1),
    ),
    "Gemini": (
        Obj(
            usage_metadata=Obj(
                prompt_token_count=50,
                candidates_token_count=7,
                thoughts_token_count=3,
                cached_content_token_count=20,
                tool_use_prompt_token_count=None,
                total_token_count=60,
            )
        ),
        Usage(50, 10, 20, 0, 3),
    ),
    "Gemini REST": (
        {"usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 7, "toolUsePromptTokenCount": 4}},
        Usage(54, 7),
    ),
    "Bedrock Converse": (
        {
            "usage": {
                "inputTokens": 5,
                "outputTokens": 6,
                "totalTokens": 111,
                "cacheReadInputTokens": 100,
                "cacheWriteInputTokens": 0,
            }
        },
        Usage(105, 6, 100),
    ),
    "Bedrock Converse, last event of a stream": (
        {"metadata": {"usage": {"inputTokens": 5, "outputTokens": 6, "totalTokens": 11}}},
        Usage(5, 6),
    ),
    "Bedrock InvokeModel, last event of a stream": (
        {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 5, "outputTokenCount": 6}},
        Usage(5, 6),
    ),
    "LiteLLM with Anthropic behind it": (
        Obj(
            usage=Obj(
                prompt_tokens=1210,
                completion_tokens=20,
                total_tokens=1230,
                cache_read_input_tokens=1000,
                cache_creation_input_tokens=200,
                prompt_tokens_details=Obj(cached_tokens=1000),
            )
        ),
        Usage(1210, 20, 1000, 200),
    ),
    "LangChain message": (
        Obj(
            usage_metadata={
                "input_tokens": 100,
                "output_tokens": 5,
                "total_tokens": 105,
                "input_token_details": {"cache_read": 90, "cache_creation": 5},
                "output_token_details": {"reasoning": 2},
            }
        ),
        Usage(100, 5, 90, 5, 2),
    ),
    "LangChain result": (
        Obj(llm_output={"token_usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}),
        Usage(3, 4),
    ),
    "DeepSeek": (
        {"usage": {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}},
        Usage(10, 1, 8),
    ),
    "xAI counts reasoning beside the completion": (
        {
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 200,
                "total_tokens": 310,
                "completion_tokens_details": {"reasoning_tokens": 100},
            }
        },
        Usage(10, 300, 0, 0, 100),
    ),
    "Ollama": ({"model": "llama3.2", "prompt_eval_count": 26, "eval_count": 298}, Usage(26, 298)),
    "Cohere": (Obj(usage=Obj(tokens=Obj(input_tokens=5, output_tokens=6), billed_units=Obj())), Usage(5, 6)),
    "GenAI attributes": (
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 10,
            "gen_ai.usage.cache_read.input_tokens": 50,
            "gen_ai.usage.cache_creation.input_tokens": 20,
            "gen_ai.usage.reasoning.output_tokens": 4,
        },
        Usage(100, 10, 50, 20, 4),
    ),
    "GenAI attributes, old names": (
        {"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 10},
        Usage(100, 10),
    ),
    "GenAI attributes of an instrumentation that leaves the cache out": (
        {
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 10,
            "gen_ai.usage.cache_read_input_tokens": 500,
        },
        Usage(505, 10, 500),
    ),
    "OpenInference attributes": (
        {
            "llm.token_count.prompt": 100,
            "llm.token_count.completion": 10,
            "llm.token_count.prompt_details.cache_read": 7,
        },
        Usage(100, 10, 7),
    ),
    "Langfuse": (
        {"input": 10, "output": 5, "input_cache_read": 100, "output_reasoning": 20, "total": 135},
        Usage(110, 25, 100, 0, 20),
    ),
    "turnwatch's own": ({"input": 10, "output": 5, "cache_read": 3}, Usage(10, 5, 3)),
    "Usage": (Usage(1, 2), Usage(1, 2)),
}


@pytest.mark.parametrize("name", REPLIES)
def test_usage_is_read_in_one_convention(name):
    reply, expected = REPLIES[name]

    assert read_usage(reply) == expected


def test_the_chunks_of_a_stream_are_one_call():
    chunks = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 25, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"text": "hello"}},
        {"type": "message_delta", "usage": {"output_tokens": 15}},
    ]

    assert read_usage(chunks) == Usage(25, 15)


class Raising:
    def __getattribute__(self, name):
        raise RuntimeError


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {},
        [],
        "text",
        b"bytes",
        5,
        object(),
        MagicMock(),
        {"usage": None},
        {"usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        {"usage": {"prompt_tokens": None}},
        {"usage": {"prompt_tokens": "many"}},
        {"usage": {"prompt_tokens": -1, "completion_tokens": True}},
        {"usage": {"prompt_tokens": float("nan"), "completion_tokens": float("inf")}},
        {"usage": 17},
    ],
)
def test_nothing_usable_is_none_and_never_zero(reply):
    assert read_usage(reply) is None


def test_a_reply_that_raises_is_none():
    assert read_usage(Raising()) is None
    assert read_usage({"usage": Raising()}) is None
    assert read_model(Raising()) is None


def test_what_the_caller_says_wins():
    reply = {"usage": {"prompt_tokens": 10, "completion_tokens": 5}}

    assert read_usage(reply, output_tokens=7) == Usage(10, 7)
    assert read_usage(None, input_tokens=3) == Usage(3, 0)


@pytest.mark.parametrize(
    ("reply", "model"),
    [
        (Obj(model="claude-sonnet-4-5"), "claude-sonnet-4-5"),
        ({"modelVersion": "gemini-2.5-pro"}, "gemini-2.5-pro"),
        ({"response": {"model": "gpt-5"}}, "gpt-5"),
        (Obj(response_metadata={"model_name": "gpt-4o"}), "gpt-4o"),
        ({"gen_ai.request.model": "a", "gen_ai.response.model": "b"}, "b"),
        (MagicMock(), None),
        ({"model": ""}, None),
        (None, None),
    ],
)
def test_the_model_is_read_where_it_is_said(reply, model):
    assert read_model(reply) == model


def test_the_provider_is_read_where_it_is_said():
    of_client = type("ChatCompletion", (), {"__module__": "openai.types.chat"})()

    assert read_provider({"gen_ai.provider.name": "aws.bedrock"}) == "aws.bedrock"
    assert read_provider(of_client) == "openai"
    assert read_provider(Obj()) is None

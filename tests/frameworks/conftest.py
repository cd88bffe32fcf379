"""Tests with real frameworks. Each folder has an environment of its own: see ``make test-frameworks``."""

import os
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

import turnwatch as tw
from frameworks.served import Service
from frameworks.stub_model import StubModel
from turnwatch.core.default import set_default_watch

_ENVIRONMENTS = {path.parent.name for path in Path(__file__).parent.glob("*/requirements.txt")}
# The packages of the other environments are not installed here.
collect_ignore = sorted(_ENVIRONMENTS - {os.environ.get("FRAMEWORKS_ENVIRONMENT")})

# No framework calls home from a test.
os.environ.update(
    {
        "OPENAI_AGENTS_DISABLE_TRACING": "0",  # its own spans are what the instrumentation reads
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_DISABLE_TRACKING": "true",
        "OTEL_SDK_DISABLED": "false",
        "AGNO_TELEMETRY": "false",
        "HAYSTACK_TELEMETRY_ENABLED": "false",
        "ANONYMIZED_TELEMETRY": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HF_HUB_OFFLINE": "1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_API_KEY": "none",
        "GOOGLE_API_KEY": "none",
        "NO_PROXY": "127.0.0.1,localhost",
    }
)


class Counts:
    """Reads what a scrape would show."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def __call__(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels."""
        return sum(
            sample.value
            for metric in self._registry.collect()
            for sample in metric.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


@pytest.fixture
def counts():
    registry = CollectorRegistry()
    tw.configure(registry=registry)
    yield Counts(registry)
    set_default_watch(None)


class EndedTurns(list):
    """Turns in the order in which they ended."""

    def model_ended(self, turn, call):
        pass

    def tool_ended(self, turn, call):
        pass

    def turn_ended(self, turn):
        self.append(turn)


@pytest.fixture
def turns(counts):
    turns = EndedTurns()
    tw.default_watch().listeners.append(turns)
    return turns


@pytest.fixture
def provider(counts):
    """A tracer provider that turnwatch watches."""
    provider = TracerProvider()
    tw.instrument(provider)
    yield provider
    provider.shutdown()


@pytest.fixture
def ended(provider):
    """Ends every turn, as the end of the process does."""
    return provider.shutdown


@pytest.fixture
def model(counts):
    with StubModel() as stub:
        yield stub


@pytest.fixture
def service():
    service = Service()
    yield service
    service.stop()


class Tool:
    """A tool that always finds the same, and knows how often it ran."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, customer_id: str) -> str:
        self.calls.append(customer_id)
        return f"no orders of {customer_id}"


@pytest.fixture
def tool():
    return Tool()

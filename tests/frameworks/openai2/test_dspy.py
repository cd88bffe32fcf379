"""Spans of OpenInference's instrumentation of DSPy, with real modules."""

import dspy
import pytest
from openinference.instrumentation.dspy import DSPyInstrumentor

import turnwatch as tw
from frameworks.instrumenting import instrumenting
from frameworks.openai2.dspy_model import in_dspys_form
from frameworks.span_counts import FAILS, HEALTHY, SCRIPTS, fails, spans_count
from frameworks.stub_model import healthy

QUESTION = "Where are my orders?"
NO_NAME = "unknown"
"""The spans name classes and functions, and no agent."""


@pytest.fixture(autouse=True)
def instrumented(provider):
    with instrumenting(provider, DSPyInstrumentor()):
        yield


def _ask(model, tool, script=healthy):
    def search_orders(customer_id: str) -> str:
        """Search orders."""
        return tool(customer_id)

    model.script = in_dspys_form(script)
    lm = dspy.LM("openai/gpt-4o-mini", api_base=f"{model.url}/v1", api_key="none", cache=False)
    with dspy.context(lm=lm):
        dspy.ReAct("question -> answer", tools=[search_orders], max_iters=20)(question=QUESTION)


def _in_dspy(truth):
    """The answer takes one model call more."""
    return truth | {"iterations": truth["iterations"] + 1, "usage": False}


@SCRIPTS
def test_spans_count_what_happened(model, tool, counts, ended, script, truth):
    _ask(model, tool, script)
    ended()
    spans_count(counts, NO_NAME, **_in_dspy(truth))


def test_a_turn_round_it_names_the_agent(model, tool, counts, ended):
    with tw.turn("support-bot"):
        _ask(model, tool)
    ended()
    spans_count(counts, "support-bot", **_in_dspy(HEALTHY))


def test_failed_tool_calls_are_errors(model, counts, ended):
    _ask(model, fails)
    ended()
    spans_count(counts, NO_NAME, **_in_dspy(FAILS))

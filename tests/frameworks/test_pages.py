"""What all pages of docs/frameworks share, and the page that needs no framework."""

import json
import re

import pytest
from opentelemetry.sdk.trace import TracerProvider

import turnwatch as tw
from frameworks import pages, stub_model

PAGES = sorted(path.stem for path in pages.DOCS.glob("*.md") if path.stem != "README")
LINKED = dict(re.findall(r"^- \[(.+)\]\((.+)\.md\)$", (pages.DOCS / "README.md").read_text(), re.MULTILINE))


def test_the_list_has_every_page_under_its_title_in_alphabetical_order():
    titles = {page: (pages.DOCS / f"{page}.md").read_text().partition("\n")[0].removeprefix("# ") for page in PAGES}
    assert {page: title for title, page in LINKED.items()} == titles
    assert list(LINKED) == sorted(LINKED, key=str.casefold)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_how_to_see_the_counts(page):
    text = (pages.DOCS / f"{page}.md").read_text()
    assert "](README.md#see-the-counts)" in text
    for script in pages.blocks(page, "Install", "python"):
        runs_an_agent = "tw.instrument(" in script and "def search_orders(" in script
        assert script.endswith(pages.WAITS) == runs_an_agent


def test_the_script_of_the_page_about_spans_of_your_own(model, tmp_path):
    (shown,) = pages.run("own-spans", model, tmp_path, *pages.blocks("own-spans", "Install", "python"))
    counts = shown.waiting
    assert counts("agent_turns_total", agent="support-bot", stop_reason="final_answer") == 1
    assert counts("agent_tool_calls_total", agent="support-bot", tool=stub_model.TOOL, outcome="ok") == 3
    assert counts("agent_duplicate_tool_calls_total", agent="support-bot", tool=stub_model.TOOL) == 1
    assert counts("agent_repeat_results_total", agent="support-bot", result="same") == 2
    assert counts("agent_model_calls_total", agent="support-bot", model="gpt-5-mini") == 4
    assert counts("agent_tokens_total", agent="support-bot", type="input") == 4 * 600
    assert counts("agent_spend_usd_total", agent="support-bot") > 0
    assert counts("turnwatch_fingerprint_missing_total") == counts("turnwatch_internal_errors_total") == 0


@pytest.fixture
def spans(counts):
    """Writes spans, each (name, attributes, spans below it), and counts what they come to."""
    provider = TracerProvider()
    tw.instrument(provider)
    tracer = provider.get_tracer("my.app")

    def write(*written):
        for name, attributes, below in written:
            with tracer.start_as_current_span(name, attributes=attributes):
                write(*below)

    def run(*written):
        write(*written)
        provider.shutdown()
        return counts

    return run


AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5-mini"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}


def test_the_three_names_need_no_operation(spans):
    called = {"tool.name": "x", "tool.arguments": json.dumps({"a": 1}), "tool.result": "none"}
    calls = [("llm.chat", {}, ()), ("tool.execute", called, ())] * 4
    counts = spans(("agent.turn", {"agent.name": "bot"}, calls))
    assert counts("agent_turns_total", agent="bot") == 1
    assert counts("agent_model_calls_total", agent="bot") == 4
    assert counts("agent_duplicate_tool_calls_total", agent="bot", tool="x") == 2
    assert counts("agent_loops_detected_total", severity="stuck") == 1


def test_any_text_that_stands_for_the_arguments_and_a_hash_of_the_result_are_enough(spans):
    called = TOOL | {"tool.input_hash": "the same", "gen_ai.tool.call.result": "0f3a"}
    counts = spans(("a turn", AGENT, [("a reply", CHAT, ()), ("a call", called, ())] * 4))
    assert counts("agent_loops_detected_total", agent="bot", severity="stuck") == 1
    assert counts("agent_turns_judged_total", mode="full") == 1


def test_without_results_repeats_are_a_warning(spans):
    called = TOOL | {"gen_ai.tool.call.arguments": "{}"}
    counts = spans(("a turn", AGENT, [("a reply", CHAT, ()), ("a call", called, ())] * 6))
    assert counts("agent_loops_detected_total", severity="warn") > 0
    assert counts("agent_loops_detected_total", severity="stuck") == 0
    assert counts("agent_turns_judged_total", mode="args_only") == 1


def test_an_agent_below_a_tool_is_a_turn_of_its_own(spans):
    below = ("another turn", AGENT | {"gen_ai.agent.name": "helper"}, [("a reply", CHAT, ())])
    counts = spans(("a turn", AGENT, [("a call", TOOL | {"gen_ai.tool.call.arguments": "{}"}, [below])]))
    assert counts("agent_turns_total", agent="bot") == counts("agent_turns_total", agent="helper") == 1
    assert counts("agent_model_calls_total", agent="helper") == counts("agent_model_calls_total") == 1


def test_without_a_span_above_each_call_is_a_turn(spans):
    counts = spans(*[("a call", TOOL | {"gen_ai.tool.call.arguments": "{}"}, ())] * 3)
    assert counts("agent_turns_total") == 3
    assert counts("agent_duplicate_tool_calls_total") == 0


def test_a_turn_says_why_it_ended(spans):
    reply = ("a reply", CHAT, ())
    counts = spans(("a turn", AGENT | {"agent.stop_reason": "max_iterations"}, [reply]), ("a turn", AGENT, [reply]))
    assert counts("agent_turns_total", stop_reason="max_iterations") == 1
    assert counts("agent_turns_total", stop_reason="final_answer") == 1


def test_a_name_alone_says_nothing(spans):
    counts = spans(("invoke_agent bot", {}, [("execute_tool x", {"gen_ai.tool.call.arguments": "{}"}, ())]))
    assert counts("agent_tool_calls_total") == 0
    assert counts("turnwatch_spans_total", outcome="unrelated") == 2

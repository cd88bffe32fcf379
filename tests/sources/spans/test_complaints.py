"""What is said of spans that do not carry enough."""

import logging
import re
from pathlib import Path

import pytest
from tests.sources.spans.corpus import cases
from tests.sources.spans.story import Story

from turnwatch.settings import Settings
from turnwatch.sources.scan import scan
from turnwatch.sources.spans.complaints import page_about
from turnwatch.sources.spans.dialect import BY_NAME, DIALECTS

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = sorted(page.name for page in (DOCS / "frameworks").glob("*.md"))


@pytest.fixture
def story():
    return Story()


# Two replies in a row, no tool call between them: without this the first may have asked for one.
ANSWERED = {"gen_ai.response.finish_reasons": ["stop"]}


def chat_without_usage(story, parent=9, at=0, **more):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    return story.span("chat gpt-4o", attributes | ANSWERED, parent, at=at, **more)


@pytest.fixture
def said(caplog):
    """What has been said so far."""
    caplog.set_level(logging.WARNING, "turnwatch")
    return lambda: [record.getMessage() for record in caplog.records]


def test_missing_arguments_are_told_with_attribute_service_agent_and_page(story, said):
    spans = [story.tool(9, args=None, at=at, resource={"service.name": "shop"}) for at in range(3)]
    story.feed(*spans, story.agent(9, resource={"service.name": "shop"}))
    story.all_turns()
    (line,) = said()
    assert "Spans of genai (my.instrumentation) come without tool arguments" in line
    assert "(first seen in service shop, agent bot)" in line
    assert "gen_ai.tool.call.arguments" in line
    assert line.endswith("/docs/frameworks/own-spans.md")


def test_a_dialect_with_a_switch_is_told_with_it(story, said):
    story.feed(story.tool(9, args=None, scope="agent_framework.x"), story.agent(9, scope="agent_framework.x"))
    story.all_turns()
    (line,) = said()
    assert BY_NAME["agent_framework"].switch in line
    assert line.endswith("/docs/frameworks/microsoft.md")


def test_missing_usage_is_told_once_for_each_instrumentation(story, said):
    for run in (1, 2):
        calls = [chat_without_usage(story, run, at, trace=run) for at in range(2)]
        story.feed(*calls, story.agent(run, trace=run))
    story.feed(chat_without_usage(story, 3, trace=3, scope="other.app"), story.agent(3, trace=3))
    story.all_turns()
    mine, other = said()
    assert "Spans of genai (my.instrumentation) come without token counts (first seen in agent bot)" in mine
    assert "gen_ai.usage.input_tokens" in mine
    assert mine.endswith("/docs/frameworks/own-spans.md")
    assert "(other.app)" in other


@pytest.mark.parametrize("where", ["on one of the calls", "on the agent's span", "nowhere, as the only call failed"])
def test_usage_that_is_there_or_cannot_be_is_not_missed(where, story, said):
    calls = [chat_without_usage(story, failed=where.startswith("nowhere"))]
    if where == "on one of the calls":
        calls.append(story.chat(9, at=1, attributes=ANSWERED))
    usage = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 1}
    story.feed(*calls, story.agent(9, attributes=usage if where == "on the agent's span" else {}))
    story.all_turns()
    assert said() == []


def test_names_from_outside_write_no_lines_of_their_own(story, said):
    story.feed(story.tool(9, args=None, scope="my\napp"), story.agent(9, name="bot\nWARNING all is well"))
    story.all_turns()
    (line,) = said()
    assert "\n" not in line


def _measured():
    """By captured dialect, the page that says it is about it."""
    for page in PAGES:
        for line in re.findall(
            r"^Measured on captured spans: (.*) in ", (DOCS / "frameworks" / page).read_text(), re.M
        ):
            yield from ((name, page) for name in re.findall(r"`([^`]+)`", line))


def test_every_captured_dialect_leads_to_the_page_that_is_about_it():
    measured = dict(_measured())
    assert len(measured) > 50
    assert {name: page_about(name).rsplit("/", 1)[1] for name in measured} == measured


def test_every_declared_scope_leads_to_a_page_that_is_there_and_every_page_is_led_to():
    scopes = [(dialect.name, scope.rstrip("*")) for dialect in DIALECTS for scope in (*dialect.scopes, "")]
    led_to = {page_about(*about).rsplit("/", 1)[1] for about in [*scopes, ("genai", "my.app")]}
    assert led_to == set(PAGES)


def _of_each_dialect():
    """One case of each captured dialect: that with a loop, where there is one."""
    found = {}
    for case in cases():
        if case.name == "loop" or case.dialect not in found:
            found[case.dialect] = case
    return found.values()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.dialect) for case in _of_each_dialect()])
def test_of_captured_spans_only_that_is_missed_which_they_lack(case, said):
    for _ in scan(case.files("sdk-json"), Settings()):
        pass
    lacks = case.lacks()
    for line in said():
        missing = "usage" if "come without token counts" in line else "arguments"
        assert missing in lacks or {"model calls", "tool calls"} & lacks

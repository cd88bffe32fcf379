"""The name of a turn that is counted before its agent's span, which comes last, has told it."""

import pytest
from tests.sources.spans.story import Story


@pytest.fixture
def story():
    return Story()


def served(story, number, name):
    """One turn of twenty calls, whose agent's span comes last and in a batch of its own."""
    of_service = {"resource": {"service.name": "support-svc"}, "trace": number}
    calls = [story.chat(number, at=at, **of_service) for at in range(20)]
    return calls, story.agent(number, name=name, **of_service)


def names_while_open(story, number, name):
    calls, agent = served(story, number, name)
    story.feed(*calls)
    open_now = [name for name, series in story.watch.agents.items() if series.open_turns]
    story.feed(agent)
    story.pass_time(100)
    return open_now


def test_a_turn_counted_before_its_agents_span_has_the_name_of_the_services_only_agent(story):
    assert names_while_open(story, 1, "bot") == ["support-svc"]
    assert names_while_open(story, 2, "bot") == ["bot"]
    assert names_while_open(story, 3, "other") == ["bot"]
    assert names_while_open(story, 4, "bot") == ["support-svc"]
    assert [turn.agent for turn in story.ended] == ["bot", "bot", "other", "bot"]

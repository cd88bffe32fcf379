"""What docs/frameworks has its readers copy, run as it stands."""

import pytest

from frameworks import pages, stub_model

# By page, the name under which its agent is counted.
AGENTS = {"google-adk": "support_bot", "llamaindex": "support-bot", "strands": "support-bot"}

RUN_THE_AGENT = """
guarded = FunctionAgent(name="support_bot", llm=llm, tools=[search_orders])


async def ask() -> None:
    await guarded.run("Where are the orders of C-7841?")


asyncio.run(ask())
"""


@pytest.mark.parametrize("page", AGENTS)
def test_the_first_block_of_a_page_counts_everything(page, model, tmp_path):
    model.script = stub_model.healthy
    pages.check_the_first_block(page, model, tmp_path, AGENTS[page])


@pytest.mark.parametrize("page", AGENTS)
def test_the_guard_of_a_page_guards(page, model, tmp_path):
    model.script = pages.first_healthy_then_a_loop
    pages.check_the_guard(page, model, tmp_path, RUN_THE_AGENT if page == "llamaindex" else "")

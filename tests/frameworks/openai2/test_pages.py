"""What docs/frameworks has its readers copy, run as it stands."""

import pytest

from frameworks import pages
from frameworks.openai2.dspy_model import in_dspys_form
from frameworks.stub_model import healthy

# By page, the name under which its agent is counted.
AGENTS = {"google-adk": "support_bot", "llamaindex": "support-bot", "strands": "support-bot"}

RUN_THE_AGENT = """
guarded = FunctionAgent(name="support_bot", llm=llm, tools=[search_orders])


async def ask() -> None:
    await guarded.run("Where are the orders of C-7841?")


asyncio.run(ask())
"""


@pytest.mark.parametrize("page", AGENTS)
def test_the_blocks_of_a_page_count_and_guard(page, model, tmp_path):
    model.script = pages.first_healthy_then_a_loop
    pages.check(page, model, tmp_path, AGENTS[page], RUN_THE_AGENT if page == "llamaindex" else "")


def test_the_script_of_the_page_about_dspy_counts(model, tmp_path):
    model.script = in_dspys_form(healthy)
    pages.check_script("dspy", model, tmp_path, "support-bot", model_calls=4, has_usage=False)

"""What docs/frameworks has its readers copy, run as it stands."""

from dataclasses import replace

from frameworks import pages
from frameworks.stub_model import TOOL

# Semantic Kernel puts the plugin before the tool's name, to the model as well.
PLUGIN = "Orders"


def test_the_blocks_of_the_page_about_crewai_count_and_guard(model, tmp_path):
    model.script = pages.first_healthy_then_a_loop
    pages.check("crewai", model, tmp_path, "support-bot")


def test_the_blocks_of_the_page_about_semantic_kernel_count_and_guard(model, tmp_path):
    def script(number, request):
        reply = pages.first_healthy_then_a_loop(number, request)
        return replace(reply, calls=[(f"{PLUGIN}-{tool}", arguments) for tool, arguments in reply.calls])

    model.script = script
    pages.check("semantic-kernel", model, tmp_path, "support-bot", tool=f"{PLUGIN}-{TOOL}")


def test_the_script_of_the_page_about_autogen_counts(model, tmp_path):
    pages.check_script("autogen", model, tmp_path, "support_bot")

"""What docs/frameworks has its readers copy, run as it stands."""

from frameworks import pages


def test_the_blocks_count_and_guard(model, tmp_path):
    model.script = pages.first_healthy_then_a_loop
    pages.check("crewai", model, tmp_path, "support-bot")

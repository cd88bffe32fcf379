"""What docs/frameworks has its readers copy, run as it stands."""

from frameworks import pages, stub_model


def test_the_first_block_counts_everything(model, tmp_path):
    model.script = stub_model.healthy
    pages.check_the_first_block("crewai", model, tmp_path, "support-bot")


def test_the_guard_guards(model, tmp_path):
    model.script = pages.first_healthy_then_a_loop
    pages.check_the_guard("crewai", model, tmp_path)

"""One Prometheus, one Alertmanager and one webhook receiver for all end-to-end tests."""

import pytest

from turnwatch.demo.servers import serving
from turnwatch.pack.render import RULES_FILE, render

WINDOW_SECONDS = 15


@pytest.fixture(scope="session")
def window_seconds():
    """The trailing window of exporter and rules: short, so that a test can wait for its end."""
    return WINDOW_SECONDS


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """Real servers with the pack's rules. Without Prometheus on the machine this fails and says what to install."""
    folder = tmp_path_factory.mktemp("pack")
    render({"window": f"{WINDOW_SECONDS}s", "keepFiringFor": "2s"}, folder)
    with serving(folder / RULES_FILE, {}) as running:
        yield running

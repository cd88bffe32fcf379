"""The committed pack, and rule files rendered with other settings."""

from pathlib import Path

import pytest
import yaml

from turnwatch.pack.home import pack_home
from turnwatch.pack.render import RULES_FILE, render


@pytest.fixture(scope="session")
def home():
    return pack_home()


@pytest.fixture(scope="session")
def alerts(home):
    """Every alerting rule of the committed file."""
    document = yaml.safe_load((home / RULES_FILE).read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"] if "alert" in rule]


@pytest.fixture
def rules_with(tmp_path):
    """Render the pack with these keys of `_config` and return its rule file."""

    def rendered(config) -> Path:
        render(config, tmp_path)
        return tmp_path / RULES_FILE

    return rendered

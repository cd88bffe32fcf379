"""The committed pack, and rule files rendered with other settings."""

from pathlib import Path

import pytest
import yaml

from turnwatch.pack.home import pack_home
from turnwatch.pack.render import RULES_FILE, rule_file


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
    """Render the rules with these keys of `_config`."""

    def rendered(config) -> Path:
        path = tmp_path / "rules.yaml"
        path.write_text(rule_file(config), encoding="utf-8")
        return path

    return rendered

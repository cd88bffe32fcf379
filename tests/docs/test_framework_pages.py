"""The pages about frameworks stand on what was captured."""

import re
from pathlib import Path

import pytest
from tests.sources.spans.corpus import cases

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "frameworks").glob("*.md"))
FRAMEWORKS = [page for page in PAGES if page.name != "README.md"]
DIALECTS = {case.dialect for case in cases()}
# The same instrumentation with content off has no page of its own.
VARIANTS = ("_nocontent",)


def rows(page):
    if page.stem == "own-spans":
        return set()  # nobody's instrumentation
    measured = next(line for line in page.read_text().splitlines() if line.startswith("Measured on"))
    return set(re.findall(r"`([a-z0-9_]+)`", measured))


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in FRAMEWORKS])
def test_a_page_says_what_to_install_what_to_switch_and_what_is_seen(page):
    titles = re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    assert titles[:4] == ["Install", "Arguments", "What is seen", "What cannot be seen"]
    assert titles[4:] in ([], ["Guard"])
    assert rows(page) <= DIALECTS


def test_every_captured_dialect_is_on_a_page():
    named = set().union(*map(rows, FRAMEWORKS))
    assert {dialect for dialect in DIALECTS if not dialect.endswith(VARIANTS)} - named == set()

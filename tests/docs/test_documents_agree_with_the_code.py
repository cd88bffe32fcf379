"""What the documents say is what the code and the rules say."""

import importlib.util
import re
from pathlib import Path

import pytest

from turnwatch.cli.severity_words import SEVERITIES
from turnwatch.metrics.catalogue import BY_NAME, CATALOGUE

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_documents_are_up_to_date(generator):
    stale = [path.name for path, text in generator.documents().items() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run make generate and commit what changes"


def test_the_reference_has_every_metric_with_its_labels(generator):
    reference = generator.metrics_reference()
    for metric in CATALOGUE:
        row = next(line for line in reference.splitlines() if line.startswith(f"| `{metric.name}` |"))
        assert metric.help in row
        assert metric.otel_name in row
        assert all(f"`{label}`" in row for label in metric.labels)


def test_the_readme_names_only_metrics_that_exist():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:agent|turnwatch)_[a-z_]+)`", readme))
    assert named
    assert named <= set(BY_NAME)


def test_links_within_the_repository_lead_somewhere():
    documents = [
        *ROOT.glob("*.md"),
        *(page for folder in ("alert_rules", "docs", "runbooks") for page in (ROOT / folder).rglob("*.md")),
    ]
    links = [(document, link) for document in documents for link in links_of(document) if "://" not in link]
    assert links
    broken = [
        f"{document.relative_to(ROOT)}: {link}" for document, link in links if not leads_somewhere(document, link)
    ]
    assert not broken


def links_of(document):
    return re.findall(r"\]\(([^)\s]+)\)", without_blocks(document))


def leads_somewhere(document, link):
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    return target.exists() and (not anchor or anchor in headings_of(target))


def headings_of(document):
    """What GitHub makes of the headings: small letters, hyphens for spaces, punctuation left out."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(document), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def without_blocks(document):
    return re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "docs/alerts.md", "docs/scan.md", "docs/top.md"])
def test_documents_say_what_severities_mean_in_the_words_of_the_commands(document):
    text = " ".join((ROOT / document).read_text(encoding="utf-8").replace("**", "").split())
    assert SEVERITIES in text

"""What the documents say is what the code and the rules say."""

import importlib.util
import re
from pathlib import Path

import pytest

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
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name} links to {target}"

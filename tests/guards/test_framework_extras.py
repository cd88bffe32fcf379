"""A guard whose framework is not installed says which extra brings it."""

import ast
import importlib
import sys
import tomllib
from pathlib import Path

import pytest

import turnwatch as tw

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Module of the guard, what it imports, and the extra.
GUARDS = [
    ("langchain", "langchain", "langchain"),
    ("langchain_callback", "langchain_core", "langchain"),
    ("openai_agents", "agents", "openai-agents"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ("claude_agent_sdk", "claude_agent_sdk", "claude-agent-sdk"),
    ("strands", "strands", "strands"),
    ("crewai", "crewai", "crewai"),
    ("smolagents", "smolagents", "smolagents"),
    ("llama_index", "llama_index.core", "llama-index"),
    ("google_adk", "google.adk", "google-adk"),
]


@pytest.mark.parametrize(("module", "package", "extra"), GUARDS)
def test_a_missing_framework_is_said_with_its_extra(monkeypatch, module, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"turnwatch.guards.frameworks.{module}", raising=False)
    with pytest.raises(tw.MissingExtraError, match=rf"turnwatch\[{extra}\]"):
        importlib.import_module(f"turnwatch.guards.frameworks.{module}")
    assert extra in EXTRAS


def test_no_guard_that_imports_a_framework_is_left_out():
    folder = Path(tw.__file__).parent / "guards" / "frameworks"
    raising = {
        path.stem
        for path in folder.glob("*.py")
        if any(
            isinstance(node, ast.Name) and node.id == "MissingExtraError"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }
    assert raising == {module for module, _, _ in GUARDS}

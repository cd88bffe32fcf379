"""What ``import turnwatch`` costs: a short script or a function in the cloud pays it before its first line."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys

import turnwatch as tw

# Each takes between ten and two hundred milliseconds of processor time.
HEAVY = {
    "asyncio",
    "cachetools",
    "email",
    "genai_prices",
    "http",
    "multiprocessing",
    "opentelemetry.sdk",
    "prometheus_client",
    "pydantic",
    "redis",
    "requests",
    "rich",
    "socket",
    "ssl",
    "typer",
    "yaml",
}


def heavy_modules_after(code: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        # Coverage of child processes would import some of them itself.
        env={name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))},
    )
    return HEAVY.intersection(printed.stdout.split())


def test_an_import_brings_no_heavy_module():
    assert heavy_modules_after("") == set(), "python itself imports them here, so the next line shows nothing"
    assert heavy_modules_after("import turnwatch") == set()


def test_hashes_guards_and_decorators_need_no_heavy_module():
    assert (
        heavy_modules_after(
            "import turnwatch as tw\n"
            "tw.input_hash('search', {'q': 1})\n"
            "tw.LoopDetector(window=10, threshold=4).observe('search', {'q': 1})\n"
            "tw.Limits(max_usd=1.0)\n"
            "tw.watch_turn(tw.watch_tool(len))\n"
        )
        == set()
    )


def test_a_turn_needs_no_yaml_where_nothing_is_set_and_no_prices_before_a_model_call():
    after = heavy_modules_after("import turnwatch as tw\nwith tw.turn() as turn: turn.call_tool('search', len, [])")

    assert after.isdisjoint({"yaml", "genai_prices", "opentelemetry.sdk", "requests", "redis"})


def test_every_public_name_is_found():
    assert sorted(tw.__all__) == dir(tw)
    for name in tw.__all__:
        assert getattr(tw, name) is not None or name == "MISSING"


def test_what_is_imported_later_is_what_type_checkers_see():
    tree = ast.parse(inspect.getsource(tw))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert seen == tw._MODULE_OF
    assert all(hasattr(importlib.import_module(module), name) for name, module in seen.items())

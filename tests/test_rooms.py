"""A room imports only from the rooms before it, and the core from no library that does I/O or counts metrics."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnwatch

PACKAGE = Path(turnwatch.__file__).parent
# The demo drives the whole product as its user does, beside the command line.
ROOMS = ("ground", "core", "metrics", "sources", "guards", "service", "pack", "top", "demo", "cli")
GROUND = (
    "default_volatile_keys",
    "errors",
    "http_answer",
    "near_names",
    "price_file",
    "settings",
    "settings_faults",
    "settings_file",
    "settings_reference",
    "yaml_file",
)
FRONT = ("__init__", "__main__")  # put the rooms together
CORE_MAY_NOT = {"prometheus_client", "opentelemetry", "socket", "http", "urllib", "requests", "asyncio", "subprocess"}
CORE_MAY_NOT |= {"yaml", "turnwatch.price_file", "turnwatch.settings_file", "turnwatch.yaml_file"}


def imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Module and line of every import that runs, inside functions too; those for type checkers do not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            for other in child.orelse:
                yield from imports(ast.Module([other], []))
        elif isinstance(child, ast.Import):
            yield from ((alias.name, child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert not child.level, f"line {child.lineno}: imports are absolute here"
            module = child.module or ""
            if module == "turnwatch":
                yield from ((f"turnwatch.{alias.name}", child.lineno) for alias in child.names)
            else:
                yield module, child.lineno
        else:
            yield from imports(child)


def room_of(parts: tuple[str, ...]) -> str | None:
    """The room of a module below the package; None for what the package itself puts in its front."""
    if parts and parts[0] in ROOMS:
        return parts[0]
    return "ground" if parts and parts[0] in GROUND else None


def wrong_imports(room: str, source: str) -> list[str]:
    faults = []
    for module, line in imports(ast.parse(source)):
        first, *rest = module.split(".")
        if first == "turnwatch":
            other = room_of(tuple(rest))
            # The front is what a user imports, as the demo does.
            wrong = room != "demo" if other is None else ROOMS.index(other) > ROOMS.index(room)
        else:
            wrong = False
        if wrong or (room == "core" and CORE_MAY_NOT & {first, module}):
            faults.append(f"line {line}: {room} imports {module}")
    return faults


FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [file.relative_to(PACKAGE).as_posix() for file in FILES]


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_a_room_imports_only_from_rooms_before_it(file: Path):
    path = file.relative_to(PACKAGE).with_suffix("")
    room = room_of(path.parts)
    if room is None:
        assert str(path) in FRONT, f"{path} is in no room"
    else:
        assert wrong_imports(room, file.read_text()) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("core", "from turnwatch.metrics.store import Store"),
        ("core", "def f():\n    import prometheus_client"),
        ("core", "def f():\n    from turnwatch.price_file import read_price_file"),
        ("sources", "if TYPE_CHECKING:\n    pass\nelse:\n    from turnwatch.guards import gateway"),
        ("service", "from turnwatch import configure"),
        ("metrics", "try:\n    from turnwatch import cli\nexcept ImportError:\n    pass"),
    ],
)
def test_an_import_from_a_later_room_is_seen(room: str, source: str):
    assert len(wrong_imports(room, source)) == 1

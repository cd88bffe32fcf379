"""Small transcripts, written by hand from the published formats: no real session is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnwatch as tw
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.sources.scan import ScannedTurn, Unread, scan

Scan = Callable[..., tuple[list[TurnState], list[str]]]


@pytest.fixture
def scanned(tmp_path: Path) -> Scan:
    """Writes records as JSON lines (text as it is), scans the file and gives its turns and what was unread."""

    def write_and_scan(*records: Any, name: str = "transcript.jsonl") -> tuple[list[TurnState], list[str]]:
        file = tmp_path / name
        file.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
        found = list(scan([file]))
        turns = [item.state for item in found if isinstance(item, ScannedTurn)]
        return turns, [f"{item.line}: {item.reason}" for item in found if isinstance(item, Unread)]

    return write_and_scan


@pytest.fixture
def by_hand() -> Callable[[list[tuple[str, Any, str]]], TurnState]:
    """The turn that the same calls make when they are reported by hand, one a reply."""

    def report(calls: list[tuple[str, Any, str]]) -> TurnState:
        with tw.turn("demo", "one conversation", watch=Watch(clock=lambda: 0.0)) as turn:
            for tool, args, result in calls:
                with turn.model_call():
                    pass
                turn.begin_tool(tool, args).returned(result)
        return turn.state

    return report

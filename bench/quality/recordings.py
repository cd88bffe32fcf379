"""The recordings of a folder: trajectories as files have them, and their labels."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path

from turnwatch.core.events import ToolCall
from turnwatch.sources.trajectories import RecordedTurn, looks_like_trajectory, turns_of

LABELS = "labels.jsonl"


@dataclass
class Recording:
    """One trajectory with what is known of it.

    Attributes:
        stuck: What a reader said: True, False, or None (unsure, or not read).
        exact_loop: Whether the reader called it an exact loop.
        success: Whether the task was solved; None when the file does not say.
        tokens, dollars: Per call, 0 where the file does not say.
    """

    trajectory_id: str
    source: str
    record: dict
    stuck: bool | None = None
    exact_loop: bool = False
    success: bool | None = None
    tokens: list[int] = field(default_factory=list)
    dollars: list[float] = field(default_factory=list)

    def turns(self) -> list[RecordedTurn]:
        """Fresh events: the engine and the turn state may write into them."""
        return turns_of(self.record)

    def tool_calls(self) -> list[tuple[int, ToolCall]]:
        """(number of the turn, call) of every tool call, in order."""
        return [
            (number, event)
            for number, turn in enumerate(self.turns())
            for event in turn.events
            if isinstance(event, ToolCall)
        ]


def read_folder(folder: Path) -> tuple[list[Recording], int]:
    """Every trajectory under a folder, and how many lines could not be read."""
    labels = _labels(folder)
    recordings: list[Recording] = []
    broken = 0
    for path in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.jsonl.gz")]):
        if path.name.startswith("labels"):
            continue
        raw = path.read_bytes()
        for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines():
            try:
                record = json.loads(line)
                if not looks_like_trajectory(record):
                    raise ValueError
                recordings.append(_recording(record, labels))
            except (ValueError, TypeError, KeyError, AttributeError):
                broken += 1
    return recordings, broken


def _labels(folder: Path) -> dict[str, dict]:
    return {
        label["trajectory_id"]: label
        for path in sorted(folder.rglob("labels*.jsonl"))
        for label in map(json.loads, path.read_text().splitlines())
    }


def _recording(record: dict, labels: dict[str, dict]) -> Recording:
    identity = str(record.get("trajectory_id", record.get("id")))
    calls = record["calls"]
    recording = Recording(
        identity,
        str(record.get("source") or "unknown"),
        record,
        success={"success": True, "failure": False}.get(str(record.get("outcome"))),
        tokens=[int(call.get("tokens_in") or 0) + int(call.get("tokens_out") or 0) for call in calls],
        dollars=[float(call.get("cost_usd") or 0) for call in calls],
    )
    if "expected_stuck" in record:
        recording.stuck = bool(record["expected_stuck"])
    label = labels.get(identity)
    if label is not None and label["stuck"] in ("yes", "no"):
        recording.stuck = label["stuck"] == "yes"
        recording.exact_loop = label.get("kind") == "exact_loop"
    return recording

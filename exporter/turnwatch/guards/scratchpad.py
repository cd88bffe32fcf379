"""What has the agent tried already? For its own prompt, and for nowhere else."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, final

from turnwatch.core.forking import fork_safe_lock

MAX_ENTRIES: Final = 50
MAX_ARGUMENT_CHARS: Final = 300
MAX_NOTE_CHARS: Final = 500


@final
class Scratchpad:
    """What one turn has tried, in words. Thread-safe; past 50 entries the oldest are forgotten.

    This is the one place that keeps arguments as they are, because the model has to recognise them. Nothing of
    turnwatch's prints it, logs it or sends it anywhere: ``text`` is for the prompt.
    """

    def __init__(self) -> None:
        self._tried: OrderedDict[Hashable, _Tried] = OrderedDict()
        self._notes: list[str] = []
        self._lock = fork_safe_lock()

    def __repr__(self) -> str:
        return f"<Scratchpad of {len(self._tried)} calls>"

    def add(self, key: Hashable, tool: str, args: object, outcome: str) -> None:
        """Note that a call was tried, and what came of it in a few words.

        Args:
            key: What tells calls apart.
            tool: Its tool.
            args: Its arguments, or their JSON as bytes.
            outcome: The few words.
        """
        with self._lock:
            tried = self._tried.get(key)
            if tried is None:
                tried = self._tried[key] = _Tried(tool, _as_json(args)[: 4 * MAX_ARGUMENT_CHARS + 4])
                if len(self._tried) > MAX_ENTRIES:
                    self._tried.popitem(last=False)
            tried.times += 1
            tried.outcome = outcome

    def note(self, text: str) -> None:
        """Add a remark, such as why something did not help."""
        with self._lock:
            self._notes.append(text[:MAX_NOTE_CHARS])
            del self._notes[:-MAX_ENTRIES]

    def text(self) -> str:
        """What was tried, one line each; "" when nothing was."""
        with self._lock:
            lines = [tried.line() for tried in self._tried.values()]
            lines += [f"- Note: {note}" for note in self._notes]
        return "\n".join(["Tried so far in this turn:", *lines]) if lines else ""


class _Tried:
    __slots__ = ("args", "outcome", "times", "tool")

    def __init__(self, tool: str, args: bytes) -> None:
        self.tool = tool
        self.args = args
        self.times = 0
        self.outcome = ""

    def line(self) -> str:
        times = "" if self.times == 1 else f" ({self.times} times)"
        return f"- {self.tool}({_shortened(self.args)}){times}: {self.outcome}"


def _as_json(args: object) -> bytes:
    if isinstance(args, bytes):
        return args
    try:
        return json.dumps(args, ensure_ascii=False, default=str).encode("utf-8", "replace")
    except (TypeError, ValueError):
        return str(args).encode("utf-8", "replace")


def _shortened(args: bytes) -> str:
    text = args.decode("utf-8", "ignore")
    return text if len(text) <= MAX_ARGUMENT_CHARS else f"{text[:MAX_ARGUMENT_CHARS]}…"

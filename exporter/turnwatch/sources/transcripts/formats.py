"""Which reader a transcript needs, by what its records say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, Final

from turnwatch.sources.json_values import BrokenLine
from turnwatch.sources.trajectories import RecordedTurn
from turnwatch.sources.transcripts import (
    claude_code,
    codex,
    langfuse,
    langsmith,
    message_logs,
    mini_swe_agent,
    swe_agent,
)
from turnwatch.sources.transcripts.records import read_records

# Transcripts begin with records that say nothing: a title, a snapshot, a line that was cut.
_LOOKED_AT: Final = 50


@dataclass(frozen=True, slots=True)
class TranscriptFormat:
    """A format of transcripts.

    Attributes:
        name: How the format is called on the command line.
        claims: Whether a parsed record is of this format.
        read: The turns of a file of it, and the lines that could not be read.
    """

    name: str
    claims: Callable[[Any], bool]
    read: Callable[[IO[bytes]], Iterator[RecordedTurn | BrokenLine]]


# The first that claims a record reads the file: lists of messages are the least particular.
FORMATS: Final = (
    TranscriptFormat("claude-code", claude_code.claims, claude_code.read),
    TranscriptFormat("codex", codex.claims, codex.read),
    TranscriptFormat("swe-agent", swe_agent.claims, swe_agent.read),
    TranscriptFormat("mini-swe-agent", mini_swe_agent.claims, mini_swe_agent.read),
    TranscriptFormat("langsmith", langsmith.claims, langsmith.read),
    TranscriptFormat("langfuse", langfuse.claims, langfuse.read),
    TranscriptFormat("messages", message_logs.claims, message_logs.read),
)


def transcript_format(stream: IO[bytes]) -> TranscriptFormat | None:
    """The format of a file by its first records, or None when no reader knows it."""
    for item in islice(read_records(stream), _LOOKED_AT):
        if isinstance(item, BrokenLine):
            continue
        for known in FORMATS:
            if known.claims(item[1]):
                return known
    return None

"""Transcripts through ``turnwatch scan``: found among other files, forced, and written as documented."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from turnwatch.cli.scan import scan_app

RUN = CliRunner()


def events(sidechain: bool) -> list[dict[str, object]]:
    shared = {"sessionId": "s1", "isSidechain": sidechain, "timestamp": "2026-01-05T10:00:00Z", "parentUuid": None}
    asked = {"type": "user", "uuid": f"u{sidechain}", "message": {"role": "user", "content": "Find it"}}
    message = {"id": f"m{sidechain}", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    return [
        {**shared, **asked},
        {**shared, "type": "assistant", "uuid": f"a{sidechain}", "parentUuid": f"u{sidechain}", "message": message},
    ]


def test_transcripts_in_a_folder_are_found_among_other_files(tmp_path: Path):
    project = tmp_path / "projects" / "-src"
    project.mkdir(parents=True)
    main, sub = events(False), events(True)
    (project / "s1.jsonl").write_text("\n".join(map(json.dumps, [*main, *sub])))
    (project / "notes.json").write_text('{"name": "demo", "version": "1"}')
    (project / "result.txt").write_text("plain text")
    found = RUN.invoke(scan_app, ["--json", str(tmp_path)])
    assert found.exit_code == 0, found.output
    first, second = (json.loads(line) for line in found.stdout.splitlines())
    assert (first["turn_id"], first["parent_turn_id"], first["line"]) == ("s1/1", None, 1)
    assert (second["agent"], second["parent_turn_id"], second["line"]) == ("subagent", "s1/1", 3)


def test_a_file_that_is_no_transcript_is_said_to_be_none_when_it_is_read_as_one(tmp_path: Path):
    file = tmp_path / "notes.json"
    file.write_text('{"name": "demo"}')
    found = RUN.invoke(scan_app, ["--json", "--format", "transcripts", str(file)])
    assert found.exit_code == 2
    assert "not a transcript that turnwatch reads" in found.stderr

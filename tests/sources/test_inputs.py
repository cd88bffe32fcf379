"""What is to be read: files, folders, patterns, links, pipes, and what must not be looked at."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from turnwatch.sources.inputs import find_inputs
from turnwatch.sources.scan import ScannedTurn, Unread, scan

NOBODY = 65534
RUN = '{"trajectory_id": "run", "calls": [{"tool": "a", "args": {}}]}\n'


def found(*paths: Path | str) -> list[str]:
    return [str(file) for group in find_inputs([Path(path) for path in paths]).groups for file in group.files]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "runs/b.jsonl", "runs/deep/c.jsonl", "runs/deep/notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(RUN)
    return tmp_path


@pytest.mark.usefixtures("tree")
def test_a_quoted_pattern_finds_what_it_matches():
    assert found("runs/**/*.jsonl") == ["runs/b.jsonl", "runs/deep/c.jsonl"]
    assert found("*.jsonl") == ["a.jsonl"]
    (unread,) = find_inputs([Path("runs/*.csv")]).unread
    assert str(unread) == "runs/*.csv: no such file, and as a pattern it matches none"


def test_a_file_with_a_wildcard_in_its_name_is_that_file(tree: Path):
    (tree / "[1].jsonl").write_text(RUN)
    assert found("[1].jsonl") == ["[1].jsonl"]


def test_a_file_is_read_once_however_many_paths_lead_to_it(tree: Path):
    (tree / "link.jsonl").symlink_to("a.jsonl")
    (tree / "runs" / "up").symlink_to(tree)
    (tree / "runs" / "round").symlink_to("round")
    (tree / "runs" / "nowhere").symlink_to("nothing")
    assert found("a.jsonl", "./a.jsonl", "link.jsonl", tree / "a.jsonl") == ["a.jsonl"]
    names = sorted(Path(file).name for file in found("runs", ".", "runs/deep", "a.jsonl"))
    assert names == ["a.jsonl", "b.jsonl", "c.jsonl", "notes.md"]


def test_the_size_of_all_files_is_known_before_they_are_read(tree: Path):
    assert find_inputs([tree]).size == 4 * len(RUN)


def test_a_pipe_is_read_once_and_from_its_start(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(RUN * 5000,))
    writer.start()
    assert find_inputs([pipe]).size is None
    turns = [item for item in scan([pipe]) if isinstance(item, ScannedTurn)]
    writer.join()
    assert [turn.line for turn in turns] == list(range(1, 5001))


@pytest.fixture
def open_folder():
    """A folder that everybody may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def as_nobody():
    """Root may read everything."""
    list(scan([Path(__file__)]))  # imports what it needs
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    yield
    os.seteuid(0)


@pytest.mark.usefixtures("as_nobody")
def test_what_must_not_be_read_is_named_and_the_rest_is_read(open_folder: Path):
    effective = os.geteuid()
    os.seteuid(os.getuid())
    secret, hidden, listed = open_folder / "secret.jsonl", open_folder / "hidden", open_folder / "listed"
    for folder in (hidden, listed):
        folder.mkdir()
        (folder / "inner.jsonl").write_text(RUN)
    (open_folder / "run.jsonl").write_text(RUN)
    secret.write_text(RUN)
    secret.chmod(0)
    hidden.chmod(0)
    listed.chmod(0o444)
    os.seteuid(effective)
    items = list(scan([open_folder, hidden / "inner.jsonl"]))
    os.seteuid(os.getuid())
    hidden.chmod(0o755)
    listed.chmod(0o755)
    assert [Path(item.source).name for item in items if isinstance(item, ScannedTurn)] == ["run.jsonl"]
    unread = sorted(str(item) for item in items if isinstance(item, Unread))
    denied = (secret, hidden, listed / "inner.jsonl", hidden / "inner.jsonl")
    assert unread == sorted(f"{path}: Permission denied" for path in denied)

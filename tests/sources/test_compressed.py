"""Compressed files: read like plain ones, and said to be cut off or damaged when they are."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from turnwatch.errors import MissingExtraError
from turnwatch.sources.compressed import BROKEN, open_file, read_at_most
from turnwatch.sources.scan import ScannedTurn, Unread, scan

LINES = b"".join(b'{"n": %d}\n' % n for n in range(50_000))


def in_frames(content: bytes) -> bytes:
    half = len(content) // 2
    return zstandard.compress(content[:half]) + zstandard.compress(content[half:])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, zstandard.compress, in_frames])
def test_the_content_is_the_same_however_it_is_packed(tmp_path: Path, pack: Any):
    file = tmp_path / "file"
    file.write_bytes(pack(LINES))
    with open_file(file) as stream:
        assert stream.readline() == b'{"n": 0}\n'
        stream.seek(0)
        assert b"".join(stream) == LINES
    assert read_at_most(file, len(LINES)) == LINES
    assert read_at_most(file, len(LINES) - 1) is None


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_a_file_that_is_cut_off_does_not_pass_for_a_whole_one(tmp_path: Path, pack: Any):
    file = tmp_path / "file"
    file.write_bytes(pack(LINES)[:-20])
    with open_file(file) as stream, pytest.raises(BROKEN):
        stream.read()


def test_a_damaged_zstd_file_is_said_to_be_damaged(tmp_path: Path):
    file = tmp_path / "file"
    packed = bytearray(zstandard.compress(LINES))
    packed[6:40] = bytes(34)
    file.write_bytes(packed)
    with open_file(file) as stream, pytest.raises(OSError, match="damaged zstd file"):
        stream.read()


def test_a_zstd_file_is_scanned_and_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "chat.jsonl.zst"
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    file.write_bytes(zstandard.compress(json.dumps({"messages": messages}).encode()))
    (turn,) = scan([file])
    assert isinstance(turn, ScannedTurn)
    assert turn.state.iterations == 1
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError):
        open_file(file)
    (unread,) = scan([file])
    assert isinstance(unread, Unread)
    assert "turnwatch[zstd]" in unread.reason

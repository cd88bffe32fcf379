"""Compressed files: read like plain ones, and said to be cut off or damaged when they are."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from turnwatch.errors import MissingExtraError
from turnwatch.sources.compressed import BROKEN, fault_of, open_file, refuse_cut_off
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
        assert fault_of(stream) is None


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_a_file_that_is_cut_off_does_not_pass_for_a_whole_one(tmp_path: Path, pack: Any):
    file = tmp_path / "file"
    file.write_bytes(pack(LINES)[:-20])
    with open_file(file) as stream:
        assert LINES.startswith(stream.read())
        with pytest.raises(BROKEN):
            refuse_cut_off(stream)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_of_one_long_line_that_is_cut_off_what_came_before_is_read(tmp_path: Path, pack: Any):
    line = " ".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(5_000)).encode()
    file = tmp_path / "file"
    packed = pack(line)
    file.write_bytes(packed[: len(packed) // 2])
    with open_file(file) as stream:
        begun = stream.readline()
        assert len(begun) > len(line) // 3
        assert line.startswith(begun)
        assert isinstance(fault_of(stream), EOFError)
        stream.seek(0)
        assert (fault_of(stream), stream.readline()) == (None, begun)


def test_a_damaged_zstd_file_is_said_to_be_damaged(tmp_path: Path):
    file = tmp_path / "file"
    packed = bytearray(zstandard.compress(LINES))
    packed[6:40] = bytes(34)
    file.write_bytes(packed)
    with open_file(file) as stream:
        stream.read()
        with pytest.raises(OSError, match="damaged zstd file"):
            refuse_cut_off(stream)


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

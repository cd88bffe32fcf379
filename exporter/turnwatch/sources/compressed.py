"""Files as they were before they were compressed, told by their first bytes."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, Any, Final, cast

from turnwatch.errors import MissingExtraError

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\x00"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class DamagedFileError(OSError):
    """A zstd file is damaged."""


BROKEN: Final = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, DamagedFileError, MissingExtraError)
"""What reading raises where a compressed file is cut off or damaged, or the package for it is missing."""

# A chunk of what is well compressed becomes thousands of times as much.
_CHUNK_BYTES: Final = 1 << 14


def open_file(path: Path) -> IO[bytes]:
    """Open a file for reading, plain or compressed with gzip, xz or zstd.

    Raises:
        OSError: The file cannot be opened.
        MissingExtraError: It is compressed with zstd, and the package for that is not installed.
        EOFError, OSError, zlib.error, lzma.LZMAError: While reading: a compressed file is cut off or damaged.
    """
    with path.open("rb") as stream:
        magic = stream.read(6)
    if magic.startswith(_GZIP):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if magic.startswith(_XZ):
        return lzma.open(path, "rb")
    if magic.startswith(_ZSTD):
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError("reading zstd files", "zstd") from None
        return io.BufferedReader(_Zstd(path, zstandard), _CHUNK_BYTES)
    return path.open("rb")


def read_at_most(path: Path, limit: int) -> bytes | None:
    """All of a file, plain or compressed; None when that is more than so many bytes.

    Raises:
        OSError, EOFError, zlib.error, lzma.LZMAError, MissingExtraError: As by ``open_file``.
    """
    with open_file(path) as stream:
        content = stream.read(limit + 1)
    return content if len(content) <= limit else None


class _Zstd(io.RawIOBase):
    """The frames of a zstd file, one after the other. The package's own reader takes a cut-off file for a whole one."""

    def __init__(self, path: Path, zstandard: Any) -> None:
        self._damaged: type[Exception] = zstandard.ZstdError
        self._new_frame: Any = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._rest = b""
        self._file = path.open("rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if offset or whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only to the start")
        self._file.seek(0)
        self._frame, self._rest = None, b""
        return 0

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            raw = self._file.read(_CHUNK_BYTES) if self._frame is None or not self._frame.unused_data else b""
            if self._frame is not None and self._frame.eof:
                raw = self._frame.unused_data + raw
                self._frame = None
            if not raw:
                if self._frame is not None:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
                return 0
            self._frame = self._frame or self._new_frame()
            try:
                self._rest = self._frame.decompress(raw)
            except self._damaged as error:
                raise DamagedFileError("damaged zstd file") from error
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()

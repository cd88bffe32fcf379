"""Files as they were before they were compressed or written in UTF-16, told by their first bytes."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, cast

from turnwatch.errors import MissingExtraError

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\x00"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
# What some shells write when output is redirected into a file.
_UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_LONGEST_MAGIC: Final = 6


class DamagedFileError(OSError):
    """A zstd file is damaged."""


BROKEN: Final = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, DamagedFileError, MissingExtraError)
"""What reading raises where a compressed file is cut off or damaged, or the package for it is missing."""

# A chunk of what is well compressed becomes thousands of times as much.
_CHUNK_BYTES: Final = 1 << 14
_BUFFER_BYTES: Final = 1 << 18


def open_file(path: Path, on_read: Callable[[int], None] | None = None) -> IO[bytes]:
    """Open a file for reading, plain or compressed with gzip, xz or zstd, in UTF-8 or in UTF-16 with its mark.

    Where a compressed file is cut off or damaged it ends, and ``fault_of`` says why.

    Args:
        path: The file.
        on_read: Told now and then how many bytes of it have been read.

    Raises:
        OSError: The file cannot be opened.
        MissingExtraError: It is compressed with zstd, and the package for that is not installed.
    """
    return opened(io.FileIO(path) if on_read is None else _Watched(path, on_read))


def opened(raw: io.RawIOBase) -> IO[bytes]:
    """The same of what is open already, from where it stands."""
    stream = io.BufferedReader(raw, _BUFFER_BYTES)
    try:
        return _plain(stream)
    except BaseException:
        stream.close()
        raise


def _plain(stream: io.BufferedReader[io.RawIOBase]) -> IO[bytes]:
    magic = stream.peek(_LONGEST_MAGIC)
    if magic.startswith(_GZIP):
        return _as_far_as_it_goes(_Gzip(stream))
    if magic.startswith(_XZ):
        return _as_far_as_it_goes(_Xz(stream))
    if magic.startswith(_ZSTD):
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError("reading zstd files", "zstd") from None
        return _as_far_as_it_goes(io.BufferedReader(_Zstd(stream, zstandard), _CHUNK_BYTES))
    encoding = _UTF_16.get(magic[:2])
    if encoding is not None:
        return io.BufferedReader(_Recoded(stream, encoding), _BUFFER_BYTES)
    return stream


def _as_far_as_it_goes(file: Any) -> IO[bytes]:
    return io.BufferedReader(_AsFarAsItGoes(file), _BUFFER_BYTES)


def fault_of(stream: object) -> Exception | None:
    """Why a compressed file ended where it did, if that was not its end: one of ``BROKEN``."""
    raw = stream.raw if isinstance(stream, io.BufferedReader) else None
    return raw.fault if isinstance(raw, _AsFarAsItGoes) else None


def refuse_cut_off(stream: object) -> None:
    """Refuse a compressed file that ended before its end, where a part of it is of no use.

    Raises:
        EOFError, OSError, zlib.error, lzma.LZMAError: What ended it.
    """
    fault = fault_of(stream)
    if fault is not None:
        raise fault


class _Watched(io.FileIO):
    """A file that tells how far it has been read."""

    def __init__(self, path: Path, on_read: Callable[[int], None]) -> None:
        super().__init__(path)
        self._on_read = on_read
        self._done = 0

    def readinto(self, buffer: Any, /) -> int:
        size = super().readinto(buffer) or 0
        self._done += size
        self._on_read(self._done)
        return size


class _Gzip(gzip.GzipFile):
    """Closes the file that it reads."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._file = file

    def close(self) -> None:
        super().close()
        self._file.close()


class _Xz(lzma.LZMAFile):
    """Closes the file that it reads."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, "rb")
        self._file = file

    def close(self) -> None:
        super().close()
        self._file.close()


class _Derived(io.RawIOBase):
    """What is made of another file's bytes, piece by piece. It can be read again from the start."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._rest = b""
        self._start()

    def _start(self) -> None:
        """Forget what was read."""
        raise NotImplementedError

    def _next_piece(self) -> bytes | None:
        """What the next bytes of the file come to, which may be nothing yet; None at its end."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if offset or whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only to the start")
        self._file.seek(0)
        self._rest = b""
        self._start()
        return 0

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            piece = self._next_piece()
            if piece is None:
                return 0
            self._rest = piece
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


class _AsFarAsItGoes(_Derived):
    """What can be read of a compressed file. A fault ends it, instead of taking away the line that was being read.

    Attributes:
        fault: What ended it.
    """

    def _start(self) -> None:
        self.fault: Exception | None = None

    def _next_piece(self) -> bytes | None:
        if self.fault is None:
            try:
                return cast("io.BufferedReader", self._file).read1(_CHUNK_BYTES) or None
            except BROKEN as fault:
                self.fault = fault
        return None


class _Recoded(_Derived):
    """A text in another encoding, in UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._new_decoder = codecs.getincrementaldecoder(encoding)
        super().__init__(file)

    def _start(self) -> None:
        self._decoder = self._new_decoder("replace")

    def _next_piece(self) -> bytes | None:
        raw = self._file.read(_CHUNK_BYTES)
        text = self._decoder.decode(raw, final=not raw)
        return text.encode("utf-8", "replace") if raw or text else None


class _Zstd(_Derived):
    """The frames of a zstd file, one after the other. The package's own reader takes a cut-off file for a whole one."""

    def __init__(self, file: IO[bytes], zstandard: Any) -> None:
        self._damaged: type[Exception] = zstandard.ZstdError
        self._new_frame: Any = zstandard.ZstdDecompressor().decompressobj
        super().__init__(file)

    def _start(self) -> None:
        self._frame: Any = None

    def _next_piece(self) -> bytes | None:
        raw = self._file.read(_CHUNK_BYTES) if self._frame is None or not self._frame.unused_data else b""
        if self._frame is not None and self._frame.eof:
            raw = self._frame.unused_data + raw
            self._frame = None
        if not raw:
            if self._frame is not None:
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            return None
        self._frame = self._frame or self._new_frame()
        try:
            piece: bytes = self._frame.decompress(raw)
        except self._damaged as error:
            raise DamagedFileError("damaged zstd file") from error
        return piece

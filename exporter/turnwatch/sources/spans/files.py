"""Files of spans: what the OpenTelemetry SDK, its exporters and the Collector write."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, Literal, cast

from turnwatch.errors import MissingExtraError
from turnwatch.sources.compressed import open_file, refuse_cut_off
from turnwatch.sources.json_values import MAX_VALUE_BYTES, BrokenLine, read_values
from turnwatch.sources.spans import sdk_json
from turnwatch.sources.spans.logs import LogData, is_logs_json, logs_of_json, logs_of_request
from turnwatch.sources.spans.otlp_json import WRONG_SHAPE, Passing, bare_span, is_otlp_json, spans_to_order
from turnwatch.sources.spans.span import SpanData
from turnwatch.sources.wrong_shape import what_is_wrong

Format = Literal["sdk-json", "otlp-json", "otlp-protobuf", "otlp-logs"]

LOOKED_AT: Final = 50
"""How many records of a file say what it holds: the first may have been cut off, or belong to something else."""

# Every body of traces or logs begins with its first field, which is a message.
_BODY_STARTS: Final = b"\n"


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a file that could not be read; the rest was.

    Attributes:
        path: The file.
        line: Line number from 1, or 0 for the whole file.
        reason: What is wrong, without the file's content.
    """

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Read:
    """What one line of a file, or a body, says.

    Attributes:
        line: Line number from 1, or 0 where the format has no lines.
        size: Bytes that it takes in the file.
        spans: Its spans that can play a part.
        passing: Its other spans.
        logs: Its log records, as far as they tell something of calls.
    """

    line: int
    size: int
    spans: list[SpanData]
    passing: list[Passing]
    logs: list[LogData]


OnProblem = Callable[[Problem], None]
Open = Callable[[Path], IO[bytes]]


def ignore(problem: Problem) -> None:
    """Take no notice of a problem."""


def format_of(path: Path, open_: Open = open_file) -> Format | None:
    """The format of a file of spans by its content, or None when it is no such file.

    Log records in OTLP count as such a file: some dialects say in them what their spans leave out.

    Raises:
        OSError: The file cannot be read.
    """
    with open_(path) as file:
        for item in islice(read_values(beginning_of(file)), LOOKED_AT):
            found = None if isinstance(item, BrokenLine) else format_of_value(item.value)
            if found is not None:
                return found
    return format_of_body(lambda: open_(path))


def beginning_of(file: IO[bytes]) -> IO[bytes]:
    """As much of a file as is read to find out what it holds: large files may hold anything."""
    return io.BufferedReader(_Beginning(file, MAX_VALUE_BYTES + 2))


class _Beginning(io.RawIOBase):
    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._file.read(min(len(buffer), self._left))
        buffer[: len(piece)] = piece
        self._left -= len(piece)
        return len(piece)


def format_of_value(value: Any) -> Format | None:
    """What one JSON value of a file shows the file to be, or None when it is of no such file."""
    if isinstance(value, list):
        return next((found for member in value[:LOOKED_AT] if (found := format_of_value(member)) is not None), None)
    if is_otlp_json(value):
        return "otlp-json"
    if is_logs_json(value):
        return "otlp-logs"
    return "sdk-json" if sdk_json.is_sdk_json(value) else None


def format_of_body(open_: Callable[[], IO[bytes]]) -> Format | None:
    """Whether a file is one body in protobuf, and of what.

    Raises:
        OSError, EOFError: The file cannot be read, or is compressed and cut off.
    """
    with open_() as file:
        raw = file.read(1)
        if raw != _BODY_STARTS:
            return None
        raw += file.read(MAX_VALUE_BYTES)
        refuse_cut_off(file)
    if len(raw) > MAX_VALUE_BYTES:
        return None
    try:
        if _spans_of_body(raw):
            return "otlp-protobuf"
    except MissingExtraError:
        return "otlp-protobuf"  # reading it says what is missing
    except ValueError:
        pass  # it may be log records
    return "otlp-logs" if _is_logs_body(raw) else None


def read_spans_file(path: Path, on_problem: OnProblem = ignore) -> Iterator[SpanData]:
    """The spans of one file, of a line those first that can play a part.

    What cannot be read is reported, and the rest is read.

    Args:
        path: SDK span JSON, one a line or one after the other; OTLP JSON, one document or one a line; or an
            OTLP protobuf body; each also compressed.
        on_problem: Told of every line or file that cannot be read.

    Raises:
        OSError: The file cannot be read.
    """
    for read in read_file(path, format_of(path), on_problem):
        yield from read.spans
        yield from map(bare_span, read.passing)


def read_file(
    path: Path, format: Format | None, on_problem: OnProblem = ignore, open_: Open = open_file
) -> Iterator[Read]:
    """What stands in one file, line by line. What cannot be read is reported, and the rest is read.

    Args:
        path: The file.
        format: What it is, if that is known. Files of JSON may hold a mixture.
        on_problem: Told of every line or file that cannot be read.
        open_: Opens it.

    Raises:
        OSError: The file cannot be read.
    """
    with open_(path) as file:
        if _is_body(file, format):
            yield from _read_body(file, path, format, on_problem)
            return
        for item in read_values(file):
            if isinstance(item, BrokenLine):
                on_problem(Problem(path, item.line, item.reason))
            else:
                read = _read_value(item.value, path, item.line, item.size, on_problem)
                del item  # its memory is used again for the next line, see read_values
                yield read


def _is_body(file: IO[bytes], format: Format | None) -> bool:
    if format in ("otlp-json", "sdk-json", "otlp-protobuf"):
        return format == "otlp-protobuf"
    # Every kind of file that is opened here can be peeked into.
    start = cast("io.BufferedReader[Any]", file).peek(64)
    return start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"[", b"")


def _read_value(value: Any, path: Path, line: int, size: int, on_problem: OnProblem) -> Read:
    spans: list[SpanData] = []
    passing: list[Passing] = []
    logs: list[LogData] = []

    def on_broken(error: Exception) -> None:
        on_problem(Problem(path, line, f"a span that cannot be read: {what_is_wrong(error)}"))

    for member in value if isinstance(value, list) else (value,):
        try:
            if is_otlp_json(member):
                for span in spans_to_order(member, on_broken):
                    if type(span) is SpanData:
                        span.line = line
                        spans.append(span)
                    else:
                        passing.append(span)
            elif sdk_json.is_sdk_json(member):
                span = sdk_json.span_of(member)
                span.line = line
                spans.append(span)
            elif is_logs_json(member):
                logs.extend(logs_of_json(member))
            elif not (isinstance(member, dict) and "resourceMetrics" in member):
                on_problem(Problem(path, line, "neither an SDK span nor an OTLP traces request"))
        except WRONG_SHAPE as error:
            on_broken(error)
    return Read(line, size, spans, passing, logs)


def _read_body(file: IO[bytes], path: Path, format: Format | None, on_problem: OnProblem) -> Iterator[Read]:
    raw = file.read(MAX_VALUE_BYTES + 1)
    refuse_cut_off(file)
    if len(raw) > MAX_VALUE_BYTES:
        on_problem(Problem(path, 0, f"longer than {MAX_VALUE_BYTES >> 20} MB, which no OTLP body is"))
    elif format == "otlp-logs":
        yield Read(0, len(raw), [], [], list(logs_of_request(_logs_request(raw))))
    else:
        try:
            yield Read(0, len(raw), _spans_of_body(raw), [], [])
        except (ValueError, MissingExtraError) as error:
            on_problem(Problem(path, 0, str(error)))


def _spans_of_body(raw: bytes) -> list[SpanData]:
    try:
        from google.protobuf.message import DecodeError

        from turnwatch.sources.spans.otlp import spans_of_body
    except ImportError as error:
        raise MissingExtraError("Reading OTLP protobuf", "serve") from error
    try:
        return spans_of_body(raw)
    except DecodeError as error:
        raise ValueError("not an OTLP traces request") from error


def _is_logs_body(raw: bytes) -> bool:
    from google.protobuf.message import DecodeError

    try:
        return any(record.time_unix_nano or record.observed_time_unix_nano for record in _log_records(raw))
    except DecodeError:
        return False


def _log_records(raw: bytes) -> Iterator[Any]:
    for resource_logs in _logs_request(raw).resource_logs:
        for scope_logs in resource_logs.scope_logs:
            yield from scope_logs.log_records


def _logs_request(raw: bytes) -> Any:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    return ExportLogsServiceRequest.FromString(raw)


def span_files(paths: Iterable[Path]) -> Iterator[Path]:
    """These files, and the files of spans in these folders, by name."""
    for path in paths:
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if inner.is_file() and format_of(inner) is not None:
                    yield inner
        else:
            yield path

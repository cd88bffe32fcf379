"""Files of spans: what the OpenTelemetry SDK, its exporters and the Collector write."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.errors import MissingExtraError
from turnwatch.sources.compressed import BROKEN, open_file, read_at_most
from turnwatch.sources.spans import otlp, sdk_json
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.logs import LogData, is_logs_json, logs_of_json, logs_of_request
from turnwatch.sources.spans.span import SpanData

Format = Literal["sdk-json", "otlp-json", "otlp-protobuf", "otlp-logs"]

_HEAD_BYTES: Final = 65_536
# Bodies and documents are read whole. No exporter writes larger ones; a file this large is something else.
_MAX_DOCUMENT_BYTES: Final = 1 << 30
# Files are in no particular order; within this many spans they are put in the order in which they ended.
_SORTED_SPANS: Final = 20_000
_BATCH_SPANS: Final = 1_000
# In files late children are not late by a clock, but by their place in the file.
_GRACE_SECONDS: Final = 300.0
_FOREVER: Final = float("inf")


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
class FileTurn:
    """A turn found in a file.

    Attributes:
        path: The file in which its first span stood.
        turn: The turn, ended.
    """

    path: Path
    turn: TurnState


OnProblem = Callable[[Problem], None]


def ignore(problem: Problem) -> None:
    """Take no notice of a problem."""


def format_of(path: Path) -> Format | None:
    """The format of a file of spans by its content, or None when it is no such file.

    Log records in OTLP count as such a file: some dialects say in them what their spans leave out.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        head = file.read(_HEAD_BYTES)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] in (b"{", b"["):
        return _json_format(start)
    raw = read_at_most(path, _MAX_DOCUMENT_BYTES) if head else None
    if raw is None:
        return None
    try:
        if _body(raw):
            return "otlp-protobuf"
    except MissingExtraError:
        # The first field of a traces request has number 1 and is a message.
        return "otlp-protobuf" if head[:1] == b"\n" else None
    except ValueError:
        pass  # it may be log records
    return "otlp-logs" if _is_logs_body(raw) else None


def _json_format(start: bytes) -> Format | None:
    # The keys of either format stand near the start of every object, before long values do.
    if b'"resourceSpans"' in start or b'"resource_spans"' in start:
        return "otlp-json"
    if b'"resourceLogs"' in start:
        return "otlp-logs"
    if b'"trace_id"' in start and b'"span_id"' in start and b'"context"' in start:
        return "sdk-json"
    return None


def read_spans_file(path: Path, on_problem: OnProblem = ignore) -> Iterator[SpanData]:
    """The spans of one file, as they stand in it. What cannot be read is reported, and the rest is read.

    Args:
        path: SDK span JSON, one a line or one after the other; OTLP JSON, one document or one a line; or an
            OTLP protobuf body; each also compressed.
        on_problem: Told of every line or file that cannot be read.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        head = file.read(_HEAD_BYTES)
        if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
            yield from _read_body(path, on_problem)
            return
        file.seek(0)
        first = file.readline()
        if _loaded(first) is None and not _is_broken_line(first, file.readline()):
            yield from _read_document(path, on_problem)
            return
        file.seek(0)
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            value = _loaded(line)
            if value is None:
                on_problem(Problem(path, number, "not a JSON object"))
                continue
            yield from _spans_in(value, path, number, on_problem)


def _loaded(line: bytes) -> Any:
    try:
        value = orjson.loads(line.lstrip(b"\xef\xbb\xbf"))
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


def _is_broken_line(first: bytes, second: bytes) -> bool:
    """Whether a first line that is no JSON is one broken line among whole ones."""
    return len(first.strip()) > 1 and _loaded(second) is not None


def _spans_in(value: Any, path: Path, line: int, on_problem: OnProblem) -> Iterator[SpanData]:
    if isinstance(value, list):
        for member in value:
            yield from _spans_in(member, path, line, on_problem)
        return
    try:
        if sdk_json.is_sdk_json(value):
            yield sdk_json.span_of(value)
        elif otlp.is_otlp_json(value):
            yield from otlp.spans_of_json(value)
        else:
            on_problem(Problem(path, line, "neither an SDK span nor an OTLP traces request"))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        on_problem(Problem(path, line, f"not a readable span ({type(error).__name__})"))


def _read_document(path: Path, on_problem: OnProblem) -> Iterator[SpanData]:
    """JSON that is not one value a line: a document, or values printed one after the other."""
    raw = read_at_most(path, _MAX_DOCUMENT_BYTES)
    if raw is None:
        on_problem(Problem(path, 0, "too large for one JSON document"))
        return
    text = raw.decode("utf-8-sig", errors="replace")
    decoder = json.JSONDecoder()
    position, length = 0, len(text)
    while position < length:
        while position < length and text[position] in " \t\r\n,":
            position += 1
        if position == length:
            return
        line = text.count("\n", 0, position) + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            on_problem(Problem(path, line, "not JSON from here on"))
            return
        yield from _spans_in(value, path, line, on_problem)


def _body(raw: bytes) -> list[SpanData]:
    try:
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise MissingExtraError("Reading OTLP protobuf", "serve") from error
    try:
        return otlp.spans_of_body(raw)
    except ImportError as error:
        raise MissingExtraError("Reading OTLP protobuf", "serve") from error
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


def read_logs_file(path: Path, on_problem: OnProblem = ignore) -> Iterator[LogData]:
    """The log records of a file that tell something of calls.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        if file.read(1) not in (b"{", b"["):
            yield from logs_of_request(_logs_request(read_at_most(path, _MAX_DOCUMENT_BYTES) or b""))
            return
        file.seek(0)
        for number, line in enumerate(file, 1):
            value = _loaded(line)
            try:
                if not is_logs_json(value):
                    raise ValueError("no logs request")
                yield from logs_of_json(value)
            except (ValueError, TypeError, KeyError, AttributeError):
                on_problem(Problem(path, number, "not an OTLP logs request"))


def _read_body(path: Path, on_problem: OnProblem) -> Iterator[SpanData]:
    raw = read_at_most(path, _MAX_DOCUMENT_BYTES)
    if raw is None:
        on_problem(Problem(path, 0, "too large for an OTLP body"))
        return
    try:
        spans = _body(raw)
    except ValueError as error:
        on_problem(Problem(path, 0, str(error)))
        return
    yield from spans


def span_files(paths: Iterable[Path]) -> Iterator[Path]:
    """These files, and the files of spans in these folders, by name."""
    for path in paths:
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if inner.is_file() and format_of(inner) is not None:
                    yield inner
        else:
            yield path


def iter_turns(paths: Iterable[Path], watch: Watch | None = None, on_problem: OnProblem = ignore) -> Iterator[FileTurn]:
    """The turns in files of spans, each as soon as it is over.

    A turn may be spread over several files, and the same spans may stand in several. Memory is bounded by
    the open turns and by the spans that are put in order.

    Args:
        paths: Files and folders.
        watch: Judges the turns; a new one that counts nowhere when left out.
        on_problem: Told of everything that cannot be read.

    Raises:
        OSError: a file cannot be read.
    """
    ended: list[TurnState] = []
    assembler = Assembler(
        watch or Watch(),
        grace_seconds=_GRACE_SECONDS,
        settle_seconds=_FOREVER,
        idle_seconds=_FOREVER,
        on_end=ended.append,
    )
    files: dict[str, Path] = {}
    of_spans: list[Path] = []
    for path in span_files(paths):
        if format_of(path) == "otlp-logs":
            assembler.feed_logs(read_logs_file(path, on_problem), 0.0)
        else:
            of_spans.append(path)
    newest = 0.0
    in_order = _in_end_order(_spans_of(of_spans, files, on_problem))
    # In batches, so that a turn begins when its agent's span is known, if that is near.
    while batch := list(islice(in_order, _BATCH_SPANS)):
        newest = max(newest, batch[-1].end_ns * 1e-9)
        assembler.feed(batch, newest)
        if ended:
            yield from _found(ended, files)
            ended.clear()
    assembler.flush()
    yield from _found(ended, files)


def _spans_of(paths: Iterable[Path], files: dict[str, Path], on_problem: OnProblem) -> Iterator[SpanData]:
    for path in paths:
        try:
            for span in read_spans_file(path, on_problem):
                files.setdefault(f"{span.trace_id:032x}", path)
                yield span
        except BROKEN as error:
            on_problem(Problem(path, 0, str(error) or type(error).__name__))


def _in_end_order(spans: Iterator[SpanData]) -> Iterator[SpanData]:
    """Spans by their end, children before parents, as far as a bounded number of spans allows."""
    heap: list[tuple[int, int, int, SpanData]] = []
    for number, span in enumerate(spans):
        heapq.heappush(heap, (span.end_ns, -span.start_ns, number, span))
        if len(heap) > _SORTED_SPANS:
            yield heapq.heappop(heap)[3]
    while heap:
        yield heapq.heappop(heap)[3]


def _found(turns: Iterable[TurnState], files: dict[str, Path]) -> Iterator[FileTurn]:
    for turn in turns:
        yield FileTurn(files.get(turn.turn_id[:32], Path()), turn)

"""The captured spans of many dialects, what really happened in each case, and what turnwatch makes of them."""

from __future__ import annotations

import functools
import json
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from turnwatch.core.watch import Watch
from turnwatch.sources.spans import otlp, otlp_json, sdk_json
from turnwatch.sources.spans.assembly import Assembler
from turnwatch.sources.spans.dialect import DIALECTS
from turnwatch.sources.spans.otlp_request import TracesRequest

HERE = Path(__file__).parent
# The numbers that are right, unless the spans lack what stands before them.
FIELDS = {
    "tool calls": ("tool_calls", "repeats"),
    "arguments": ("repeats",),
    "arguments of all calls": ("repeats",),
    "results": (),
    "errors": ("errors",),
    "model calls": ("iterations",),
    "usage": ("input",),
    "input tokens": ("input",),
    "output tokens": ("output",),
    "cached tokens": ("cached",),
    "turns": ("turns",),
}
WAYS = ("sdk-json", "otlp-protobuf", "otlp-json")
# By convention: in how many cases every number that the spans carry is right without any declaration of a dialect, and
# of how many. A more general rule raises them; nothing may lower them.
RIGHT_UNDECLARED = {
    "OpenInference": (98, 133),
    "Traceloop": (67, 68),
    "Langfuse": (18, 18),
    "LangSmith": (10, 12),
    "Vercel AI": (19, 19),
    "MLflow": (11, 11),
    "Haystack": (12, 12),
    "MCP": (19, 20),
    "OpenTelemetry GenAI": (359, 399),
}
# What a nested case's own truth leaves out: the outer agent's two calls of the inner one.
_OUTER_CALLS = 2
_ERRORS = {"error": 2, "error_raised": 1}
_TURNS = {"nested": 3, "turns": 2, "handoff": 2}


@functools.cache
def _folder():
    """The unpacked corpus; lives as long as the process."""
    folder = tempfile.TemporaryDirectory(prefix="turnwatch-corpus-")
    for file in sorted(HERE.glob("corpus*.tar.xz")):
        with tarfile.open(file) as archive:
            archive.extractall(folder.name, filter="data")
    return folder


@functools.cache
def carried():
    """What each dialect's spans carry, as declared in carried.toml."""
    return tomllib.loads((HERE / "carried.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Case:
    """One scenario captured in one dialect."""

    dialect: str
    name: str

    @property
    def folder(self):
        return Path(_folder().name) / self.dialect

    @functools.cached_property
    def truth(self):
        return json.loads((self.folder / f"{self.name}.truth.json").read_text())

    def files(self, way):
        patterns = {
            "sdk-json": f"{self.name}.jsonl",
            "otlp-protobuf": f"{self.name}.otlp-[0-9]*.pb",
            "otlp-json": f"{self.name}.otlp-[0-9]*.json",
        }
        return sorted(self.folder.glob(patterns[way]))

    def lacks(self):
        """What the spans of this case do not carry."""
        about = carried()[self.dialect]
        lacks = set(about.get("lacks", ())) | set(about.get("lacks_in", {}).get(self.name, ()))
        return lacks | {"output tokens"} if "usage" in lacks else lacks

    def not_carried(self):
        """The numbers that the spans do not carry."""
        return {field for what in self.lacks() for field in FIELDS[what]}

    @property
    def team(self):
        """Of a team of agents: each turn's agent, its model calls and its tool calls, as the turns began."""
        return [tuple(turn) for turn in self.truth.get("turns", ())]

    @property
    def expected(self):
        """What a reader of these spans must find, as far as they carry it."""
        truth, scenario = self.truth, self.truth["scenario"]
        tokens = truth["tokens"]
        return Numbers(
            tool_calls=len(truth["tool_executions"]) + (_OUTER_CALLS if scenario == "nested" else 0),
            repeats=0 if scenario == "turns" else truth["duplicates"],
            iterations=truth["model_calls"],
            input=tokens["input"] + tokens["cache_creation"],
            output=tokens["output"],
            cached=tokens["cached"],
            errors=_ERRORS.get(self.name, 0),
            turns=self._turns(scenario),
        )

    def _turns(self, scenario):
        return len(self.team) or _TURNS.get(self.name if self.name == "turns" else scenario, 1)


@dataclass
class Numbers:
    """What counts."""

    tool_calls: int = 0
    repeats: int = 0
    iterations: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    errors: int = 0
    turns: int = 0


@dataclass
class Measured:
    """What turnwatch found."""

    numbers: Numbers
    missing_arguments: int = 0
    calls_without_usage: int = 0
    spent_nothing: bool = False
    turns: list = field(default_factory=list)
    faults: int = 0


class CountingMeter:
    """Adds up what is counted, by name and labels."""

    def __init__(self):
        self.counts = {}

    def counter(self, name, *labels):
        return _Series(self.counts, (name, *labels))

    histogram = counter

    def total(self, name, *labels):
        wanted = set(labels)
        return sum(count for key, count in self.counts.items() if key[0] == name and wanted <= set(key[1:]))


class _Series:
    def __init__(self, counts, key):
        self._counts, self._key = counts, key

    def inc(self, amount=1.0, exemplar=None):
        self._counts[self._key] = self._counts.get(self._key, 0) + amount

    def observe(self, value, exemplar=None):
        self.inc()


def wrong_in(case, numbers):
    """The numbers that are not what was so, although the spans carry it: each with what was found and what was so."""
    expected, not_carried = case.expected, case.not_carried()
    return {
        field: (getattr(numbers, field), getattr(expected, field))
        for fields in FIELDS.values()
        for field in fields
        if field not in not_carried and getattr(numbers, field) != getattr(expected, field)
    }


@functools.cache
def cases():
    """Every case of every dialect."""
    folder = Path(_folder().name)
    return [
        Case(file.parent.name, file.name.removesuffix(".truth.json")) for file in sorted(folder.glob("*/*.truth.json"))
    ]


def batches(case, way):
    """The case's spans as they came: one at a time, or body by body."""
    if way == "sdk-json":
        for line in case.files(way)[0].read_text().splitlines():
            yield [sdk_json.span_of(json.loads(line))]
        return
    for file in case.files(way):
        if way == "otlp-protobuf":
            yield list(otlp.spans_to_feed(TracesRequest.FromString(file.read_bytes())))
        else:
            yield list(otlp_json.spans_of_json(orjson.loads(file.read_bytes())))


def measure(spans):
    """Read batches of spans, as a service does, and add up the turns they make."""
    meter = CountingMeter()
    turns = []
    assembler = Assembler(Watch(meter=meter), outcome_seconds=10.0, on_end=turns.append)
    for number, batch in enumerate(spans):
        assembler.feed(batch, now=number * 0.06)
    assembler.flush()
    return added_up(turns, meter)


def added_up(turns, meter):
    """The numbers of turns together, and of what was counted beside."""
    usages = [turn.usage for turn in turns if turn.usage is not None]
    numbers = Numbers(
        tool_calls=sum(turn.tool_calls for turn in turns),
        repeats=sum(turn.repeats for turn in turns),
        iterations=sum(turn.iterations for turn in turns),
        input=sum(usage.input for usage in usages),
        output=sum(usage.output for usage in usages),
        cached=sum(usage.cache_read for usage in usages),
        errors=int(meter.total("agent_tool_calls_total", "error")),
        turns=len(turns),
    )
    return Measured(
        numbers,
        missing_arguments=sum(turn.missing_arguments for turn in turns),
        calls_without_usage=int(meter.total("agent_model_calls_without_usage_total")),
        spent_nothing=not usages,
        turns=turns,
        faults=int(meter.total("turnwatch_internal_errors_total")),
    )


@functools.cache
def found_in(case, way):
    """What turnwatch finds in a case, read one way."""
    return measure(batches(case, way))


# The page of documentation that is made from all this

_CARRIES = ("tool calls", "arguments", "results", "errors", "model calls", "usage", "cached tokens", "turns")
_OF_MODELS = ("model calls", "usage", "cached tokens")
_INTRODUCTION = """\
<!-- Made by docs/generate.py (make generate) from tests/sources/spans. -->

# Dialects

What turnwatch reads from the spans of each instrumentation, and what those spans do not carry. Every row was captured
from the real package with a scripted model, and a test compares what turnwatch counts with what really happened:
every number marked yes is right in every case of that row, whether the spans come from the SDK, as OTLP protobuf or as
OTLP JSON. What is marked no is not guessed: calls without arguments are counted and never judged, repeats without
results are a warning and never stuck, and model calls without usage cost nothing known, not 0 dollars. Results may
stand on the call's own span or in the model's next request; then the verdict comes with that request.

The table is about spans alone. Some dialects say more in log events, which are joined where they come as well:
`claude_agent_sdk_native` its arguments, by the call's id, `openai_v2_content` and `bedrock_botocore` the replies, by
the model's span, and `openai_genai_event` all messages (they tie a raw client's calls together where the event comes
before the span).

An instrumentation that is not listed is read by the conventions it follows (see the end of this page). A declaration in
`exporter/turnwatch/sources/spans/dialects/` makes it a dialect."""

_UNDECLARED = """\
## Without a declaration

What the conventions alone make of the same cases, as they would of an instrumentation that nobody declared: in how
many of them every number that the spans carry is right. Wrong in the others is mostly a call too many, of a tool by
which the framework only ends a turn or hands it over."""


def table():
    """docs/dialects.md: what each dialect carries, and the switch that makes it carry more."""
    rows, limits = [], []
    for dialect in sorted({case.dialect for case in cases()}):
        own = [case for case in cases() if case.dialect == dialect]
        lacks = set(carried()[dialect].get("lacks", ()))
        has_models = any(case.truth["model_calls"] for case in own)
        unknown = {*(() if has_models else _OF_MODELS), *(("results",) if "arguments" in lacks else ())}
        marks = ["" if what in unknown else "no" if what in lacks else "yes" for what in _CARRIES]
        loop = next((case for case in own if case.name == "loop"), None)  # teams have none
        repeats = f"{found_in(loop, 'sdk-json').numbers.repeats} of {loop.expected.repeats}" if loop else ""
        rows.append([f"`{dialect}`", *marks, repeats, str(len(own))])
        limits.extend(
            f"- `{dialect}`, case {name}: no {', no '.join(what)}."
            for name, what in sorted(carried()[dialect].get("lacks_in", {}).items())
        )
    head = ["Dialect", *(what.capitalize() for what in _CARRIES), "Repeats found in case loop", "Cases"]
    switches = [
        [f"`{dialect.name}`", "<br>".join(f"`{scope}`" for scope in dialect.scopes), dialect.switch]
        for dialect in sorted(DIALECTS, key=lambda dialect: dialect.name)
        if dialect.switch
    ]
    undeclared = [[family, f"{right} of {cases}"] for family, (right, cases) in RIGHT_UNDECLARED.items()]
    return (
        "\n\n".join(
            [
                _INTRODUCTION,
                _markdown(head, rows),
                "## Single cases",
                "\n".join(limits),
                "## What puts arguments on the spans",
                _markdown(["Name in metrics", "Instrumentation scopes", "Switch"], switches),
                _UNDECLARED,
                _markdown(["Convention", "Cases that are right"], undeclared),
            ]
        )
        + "\n"
    )


def _markdown(head, rows):
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])

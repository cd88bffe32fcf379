"""Every captured case through ``turnwatch scan --json``: the same numbers as read any other way."""

import itertools
import json

import pytest
from tests.sources.spans.corpus import cases
from typer.testing import CliRunner

from turnwatch.cli.scan import scan_app

BY_DIALECT = {dialect: list(own) for dialect, own in itertools.groupby(cases(), lambda case: case.dialect)}


@pytest.mark.parametrize("dialect", BY_DIALECT)
def test_scan_counts_what_really_happened(dialect):
    run = CliRunner()
    for case in BY_DIALECT[dialect]:
        logs = case.folder.glob(f"{case.name}.otlp-logs-*.pb")
        files = [*case.files("sdk-json"), *sorted(logs)]
        result = run.invoke(scan_app, ["--json", *map(str, files)])
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert (result.exit_code, result.stderr) == (0, "" if rows else "turnwatch: no turn of an agent was found\n")
        lacks = case.lacks()
        if "turns" not in lacks:
            assert len(rows) == case.expected.turns, case.name
        for field in {"tool_calls", "repeats", "iterations"} - case.not_carried():
            assert sum(row[field] for row in rows) == getattr(case.expected, field), (case.name, field)
        if "input" not in case.not_carried():
            tokens = [row["tokens"] for row in rows if row["tokens"] is not None]
            assert sum(each["input"] for each in tokens) == case.expected.input, case.name


def test_scan_says_in_its_last_lines_what_would_put_arguments_on_the_spans():
    case = next(case for case in BY_DIALECT["pydantic_ai_v5_nocontent"] if case.name == "loop")
    shown = " ".join(CliRunner().invoke(scan_app, [str(case.files("sdk-json")[0])]).stdout.split())
    assert "6 calls carried no arguments and could not be judged." in shown
    assert "arguments on spans of pydantic_ai: InstrumentationSettings(include_content=True)" in shown

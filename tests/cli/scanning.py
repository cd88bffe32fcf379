"""Runs of agents, and ``turnwatch scan`` over them."""

from __future__ import annotations

import json
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from turnwatch.cli.scan import scan_app


def scan(*arguments: object, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(scan_app, [str(argument) for argument in arguments])


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def calls(number: int, result: str = "[]", tool: str = "search_orders", **more: object) -> list[dict[str, object]]:
    return [{"tool": tool, "args": {"customer_id": "C-7841"}, "result": result, **more}] * number


def run(name: str, made: list[dict[str, object]], **more: object) -> str:
    return json.dumps({"trajectory_id": name, "framework": "demo", "calls": made, **more}) + "\n"


HEALTHY = run("healthy", calls(1))
STUCK = run("stuck", calls(8, tokens_in=1_000_000, tokens_out=0, model="gpt-4o", cost_usd=2.5))
POLLING = run("polling", [{**each, "result": f"{n} of 9 done"} for n, each in enumerate(calls(4, tool="job_status"))])
RUNS = HEALTHY + STUCK + POLLING

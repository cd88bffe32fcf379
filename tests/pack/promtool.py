"""Runs promtool's unit tests."""

import subprocess
from pathlib import Path

import yaml

FIRING = 'ALERTS{alertstate="firing"}'


def run_promtool(tests: Path) -> None:
    answer = subprocess.run(["promtool", "test", "rules", str(tests)], capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def series_of(labels: dict[str, str]) -> str:
    return "ALERTS{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def expect(rules: Path, series: dict[str, str], alerts: list[dict[str, str]], *, at: str = "5m") -> None:
    """Assert that exactly these alerts fire at this time over these series, scraped every 15 s."""
    samples = [{"labels": series_of({**alert, "alertstate": "firing"}), "value": 1} for alert in alerts]
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"eval_time": at, "expr": FIRING, "exp_samples": samples}],
    }
    document = {"rule_files": [str(rules)], "evaluation_interval": "15s", "tests": [test]}
    path = rules.parent / "expectation.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    run_promtool(path)

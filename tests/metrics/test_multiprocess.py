"""Prefork workers with PROMETHEUS_MULTIPROC_DIR: real forks, a worker killed, a scrape in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from turnwatch.metrics.multiprocess import ReapingCollector

SCRIPT = Path(__file__).parent / "prefork.py"


Series = tuple[str, tuple[tuple[str, str], ...]]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Series, float]]]:
    folder = tmp_path_factory.mktemp("multiproc")
    run = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder), "TURNWATCH_DETECT__WINDOW_SECONDS": "8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    scrapes = {}
    for part in run.stdout.split("### ")[1:]:
        title, _, text = part.partition("\n")
        scrapes[title] = [
            ((sample.name, tuple(sorted(sample.labels.items()))), sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]
    return scrapes


@pytest.fixture(scope="module")
def report(samples: dict[str, list[tuple[Series, float]]]) -> dict[str, dict[Series, float]]:
    return {title: dict(scrape) for title, scrape in samples.items()}


KEY = (("agent", "bot"), ("tool", "search"))


def test_no_series_is_shown_twice(samples):
    for scrape in samples.values():
        series = [name for name, _ in scrape]
        assert len(series) == len(set(series))


def test_counters_of_all_workers_add_up_and_survive_a_killed_one(report):
    for scrape in ("both alive", "one killed", "window over"):
        assert report[scrape]["agent_duplicate_tool_calls_total", KEY] == 3 + 1


def test_gauges_are_the_largest_over_living_workers(report):
    assert report["both alive"]["agent_turn_identical_calls_max", KEY] == 5
    assert report["one killed"]["agent_turn_identical_calls_max", KEY] == 3


def test_gauges_fall_to_zero_as_the_window_slides_in_a_worker_that_does_nothing(report):
    assert report["window over"]["agent_turn_identical_calls_max", KEY] == 0


def test_open_turns_add_up_over_living_workers(report):
    agent = (("agent", "bot"),)
    assert report["both alive"]["agent_open_turns", agent] == 2
    assert report["one killed"]["agent_open_turns", agent] == 1


def test_histograms_of_all_workers_add_up(report):
    labels = (("agent", "bot"), ("stop_reason", "final_answer"))
    assert report["both alive"]["agent_iterations_count", labels] == 2


def test_a_file_that_a_worker_has_only_just_made_fails_no_scrape(tmp_path):
    (tmp_path / "counter_1.db").touch()
    assert list(ReapingCollector(str(tmp_path)).collect()) == []


WITHOUT_A_FOLDER = """
import turnwatch as tw

try:
    tw.configure()
except tw.SettingsError as error:
    print(error)
with tw.turn("bot") as turn:
    turn.call_tool("search", lambda: None)
print(tw.metrics_registry().get_sample_value("agent_turns_total", {"agent": "bot", "stop_reason": "final_answer"}))
"""


DEAD = 2**22 + 1  # past the largest process id that Linux gives


def test_a_dead_workers_file_that_another_scrape_takes_away_first_fails_no_scrape(tmp_path, monkeypatch):
    (tmp_path / f"gauge_livemax_{DEAD}.db").touch()
    remove = os.remove

    def remove_after_another(path):
        remove(path)
        remove(path)

    monkeypatch.setattr(os, "remove", remove_after_another)
    assert list(ReapingCollector(str(tmp_path)).collect()) == []
    assert list(tmp_path.iterdir()) == []


def test_workers_that_are_not_named_by_their_process_are_left_alone(tmp_path):
    file = tmp_path / "gauge_livemax_web-1.db"
    file.touch()
    assert list(ReapingCollector(str(tmp_path)).collect()) == []
    assert file.exists()


def test_a_folder_that_is_not_there_is_named_and_costs_the_agent_nothing(tmp_path):
    missing = tmp_path / "missing"
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_FOLDER],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(missing)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    fault, counted = run.stdout.splitlines()
    assert fault.startswith(f"environment: PROMETHEUS_MULTIPROC_DIR: {missing} cannot be written to")
    assert counted == "1.0"
    assert fault in run.stderr
    assert "Traceback" not in run.stderr
